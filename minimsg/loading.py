"""From a model folder to an engine, and from a model's name to something that answers.

`load_engine` decides number format, device, kernel and threads, and logs each decision.
`load` is the face of the library: text in, text out, on the same tokenizer, template,
engine and detokenizer as the server, without its thread. Importing this module imports
no torch. Next: `engine/engine.py`.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.engine.types import FinishReason, GenerationRequest, SamplingParams, Token
from minimsg.errors import ConfigError
from minimsg.hub.extras import require
from minimsg.models.config import ModelConfig
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import Prompt, images_of, render
from minimsg.protocol.request import PromptRequest
from minimsg.text.detokenize import Detokenizer

if TYPE_CHECKING:
    import torch

    from minimsg.engine.engine import Engine
    from minimsg.engine.stepping import Steps
    from minimsg.engine.watching import Functions

logger = logging.getLogger("minimsg")

Messages = Items[Mapping[str, object]]


def load(
    name: str = hub.DEFAULT, *, data_dir: Path | None = None, **settings: str | int | None
) -> TextEngine:
    """The model `name`, pulled if need be, ready to generate. `settings` are `EngineConfig`'s.

    Raises `ConfigError` on an unknown setting or if torch is not installed, and what
    `hub.ensure` and `load_engine` raise.
    """
    known = [each.name for each in fields(EngineConfig)]
    for setting in settings:
        if setting not in known:
            raise ConfigError(f"no setting is called {setting!r}; there are {', '.join(known)}")
    require("torch", extra="engine", purpose="to run a model")
    folder = hub.ensure(name, data_dir)
    config = replace(EngineConfig(), **settings)  # type: ignore[arg-type]
    return TextEngine(load_engine(folder, config), ChatModel.open(folder, name))


def load_engine(folder: Path, config: EngineConfig) -> Engine:
    """An engine for the model in `folder`. Sets torch's threads, for the whole process.

    Raises `ConfigError`, `CheckpointError`, `UnsupportedModel`, `KernelUnavailable`.
    """
    require("torch", extra="engine", purpose="to run a model")
    import torch

    from minimsg import kernels
    from minimsg.engine.engine import Engine
    from minimsg.kernels.contract import formats_of
    from minimsg.models.weights import load_model

    device = choose_device(config.device)
    if config.threads is not None:
        if config.threads < 1:
            raise ConfigError(f"threads is {config.threads}; at least 1 is needed")
        torch.set_num_threads(config.threads)
    model_config = ModelConfig.from_folder(folder)
    if model_config.vision is not None:
        require("PIL", extra="engine", purpose="to read images, as this model does")
    head_dim = model_config.head_dim
    dtype = choose_dtype(config.dtype, device, kernel=config.kernel, head_dim=head_dim)
    backend = kernels.choose(
        device=device,
        dtype=dtype,
        head_dim=head_dim,
        name=config.kernel,
        deterministic=config.deterministic,
    )
    dtype_name = str(dtype).removeprefix("torch.")
    config = replace(config, kernel=backend.name, dtype=dtype_name, device=str(device))
    model = load_model(folder, dtype=dtype, device=device, backend=backend)
    if model_config.plain_context is not None:
        why = "%s: the window is %d tokens; dual chunk attention, for longer ones, is not supported"
        logger.info(why, folder, model_config.max_context)
    logger.info("%s in %s on %s, %d CPU threads", folder, dtype, device, torch.get_num_threads())
    return Engine(
        model,
        config,
        max_context=model_config.max_context,
        dtype=formats_of(backend, dtype).cache,
        device=device,
    )


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU. Raises `ConfigError`.

    MPS only when asked for: no hardware has run its kernel yet.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|mps|cuda(:\d{1,3})?", name):
        raise ConfigError(f"device {name!r} is unknown; there are auto, cpu, cuda, cuda:1 ..., mps")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for it
        raise ConfigError(f"device {name!r} cannot be used: {error}") from error
    return device


def choose_dtype(
    name: str, device: torch.device, *, kernel: str | None = None, head_dim: int = 64
) -> torch.dtype:
    """`auto` is bfloat16 where the device, or our own code for it, is fast in it; else float32.

    Half the bytes are twice the speed of decoding, and models are published in bfloat16.
    `kernel` is the one that is asked for. Raises `ConfigError`.
    """
    import torch

    names = ("float32", "bfloat16", "float16", "int8")
    dtypes = {each: getattr(torch, each) for each in names}
    if name == "auto":
        is_fast = has_bfloat16(device) or has_native_kernel(device, kernel, head_dim)
        name = "bfloat16" if is_fast else "float32"
    if name not in dtypes:
        raise ConfigError(f"dtype {name!r} is unknown; there are auto, {', '.join(dtypes)}")
    dtype: torch.dtype = dtypes[name]
    return dtype


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device has bfloat16 in hardware, as far as torch tells."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu" and hasattr(torch.cpu, "get_capabilities"):  # torch 2.9 has it not
        return any(there for name, there in torch.cpu.get_capabilities().items() if "bf16" in name)
    return False


def has_native_kernel(device: torch.device, kernel: str | None, head_dim: int) -> bool:
    """Whether the CPU's fast path would be taken (`kernels/cpu_native.py`)."""
    import torch

    from minimsg.kernels.cpu_native import Backend

    if (kernel or os.environ.get("MINIMSG_KERNEL") or Backend.name) != Backend.name:
        return False
    return Backend().supports(device=device, dtype=torch.bfloat16, head_dim=head_dim) is None


@dataclass(frozen=True)
class Reply:
    """What a model said, as text and as tokens, and why it stopped."""

    text: str
    tokens: list[Token]
    finish_reason: FinishReason


class Options(TypedDict, total=False):
    """How to answer a prompt; what is left out, or None, is the model's own default."""

    system: str | None
    max_tokens: int  # if left out: 256
    temperature: float | None
    top_p: float | None
    top_k: int | None
    seed: int | None  # if left out: another one each time


class TextEngine:
    """An engine with the tokenizer and template of its model. One thread drives it."""

    def __init__(self, engine: Engine, chat: ChatModel) -> None:
        self.engine = engine
        self.chat = chat

    def generate(
        self, prompt: str | Messages, *, hooks: Functions | None = None, **options: Unpack[Options]
    ) -> Reply:
        """The reply to a user's words, or to messages `{"role": ..., "content": ...}`.

        `hooks` look at its activations (`engine/watching.py`). Raises `InvalidRequest` and
        `GenerationFailed`.
        """
        request, continues = self._request(prompt, options)
        tokens, finish = self.engine.run(request, hooks)
        detokenizer = Detokenizer(self.chat.tokenizer, continues=continues)
        shown = [token.id for token in tokens if token.id not in request.end_ids]
        text = "".join(detokenizer.push(id) for id in shown) + detokenizer.flush()
        return Reply(text, tokens, finish.reason)

    def steps(
        self,
        prompt: str | Messages,
        *,
        hooks: Functions | None = None,
        keep: int = 0,
        **options: Unpack[Options],
    ) -> Steps:
        """The same reply, one step of the engine at a time; leaving the loop cancels it.

        `hooks` look at its activations; the last `keep` steps can be taken back
        (`engine/stepping.py`).
        """
        request = self.request(prompt, **options)
        by_request = {request.id: hooks} if hooks else None
        return self.engine.steps(request, hooks=by_request, keep=keep)

    def request(self, prompt: str | Messages, **options: Unpack[Options]) -> GenerationRequest:
        """A prompt as the engine takes it, to be changed, or to run beside others.

        Raises `InvalidRequest`.
        """
        request, _ = self._request(prompt, options)
        return request

    def _request(self, prompt: str | Messages, options: Options) -> tuple[GenerationRequest, bool]:
        """The prompt as ids with its sampling, and whether it ends inside the reply."""
        read = self._read(prompt, options.get("system"))
        request = GenerationRequest(
            id=secrets.token_hex(8),
            prompt_ids=read.ids,
            images=images_of(read, self.chat),
            max_tokens=options.get("max_tokens", 256),
            end_ids=self.chat.end_ids,
            sampling=self._sampling(options),
        )
        return request, read.continues

    def _sampling(self, options: Options) -> SamplingParams:
        keys = {"temperature", "top_p", "top_k", "seed"}
        given = {key: value for key, value in options.items() if key in keys and value is not None}
        return replace(self.chat.sampling, **given)  # type: ignore[arg-type]

    def _read(self, prompt: str | Messages, system: str | None) -> Prompt:
        """Messages through the template; a string is one user turn, or raw text without one."""
        if isinstance(prompt, str) and self.chat.template is None:
            tokenizer = self.chat.tokenizer
            return Prompt(tokenizer.opening_ids + tokenizer.encode(prompt))
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        data = {"model": self.chat.name, "messages": list(messages), "system": system}
        return render(PromptRequest.parse(data), self.chat)
