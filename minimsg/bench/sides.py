"""Our engine, and transformers on the same weights, in one process.

Ours runs real steps (schedule, run, sample, commit); theirs is `model.generate`,
greedy, with its cache. Same threads, same prompts of equal length, so that neither side
pads. The rounds are in `rounds.py`, loading in `contests.py`, the report in `versus.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import count, islice, takewhile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from minimsg.bench import prompts
from minimsg.bench.findings import Agreement
from minimsg.bench.rounds import Figures, Prompt
from minimsg.engine.engine import GREEDY, Engine
from minimsg.engine.stepping import Step
from minimsg.engine.types import Finish, GenerationRequest, Token
from minimsg.errors import ConfigError, GenerationFailed
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import render
from minimsg.protocol.request import PromptRequest

if TYPE_CHECKING:
    from minimsg.text.tokenizer import Tokenizer


class Ours:
    """The engine in process. Satisfies `Side`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._ids = count()

    def prefilling(self, prompts: Sequence[Prompt]) -> Figures:
        for prompt in prompts:
            start = perf_counter()
            self.generate([prompt], 1)
            yield len(prompt) / (perf_counter() - start)

    def decoding(self, prompts: Sequence[Prompt], new_tokens: int) -> Figures:
        """Timed are whole steps, from the one after the last prompt's first token on."""
        requests = self._requests(prompts, self.engine.max_context - len(prompts[0]))
        steps = self.engine.steps(*requests)
        waiting = {request.id for request in requests}
        while waiting:
            waiting -= {token.request_id for token in tokens_of(next(steps))}
        try:
            while True:
                start = perf_counter()
                tokens = sum(len(tokens_of(step)) for step in islice(steps, new_tokens))
                seconds = perf_counter() - start
                if tokens != new_tokens * len(prompts):
                    raise ConfigError(f"cache or window too small for {len(prompts)} sequences")
                yield tokens / seconds
        finally:
            for request in requests:
                self.engine.cancel(request.id)
            for _ in steps:  # until the engine has said that each is over
                pass

    def serving(self, groups: list[list[Prompt]], new_tokens: int) -> Figures:
        """New tokens per second of all prompts of a group at once, reading them included."""
        for group in groups:
            start = perf_counter()
            self.generate(group, new_tokens)
            yield new_tokens * len(group) / (perf_counter() - start)

    def agreement(self, prompts: Sequence[Prompt], replies: list[list[int]]) -> Agreement:
        """How many tokens of greedy replies are generated here, too, up to the first difference."""
        same = 0
        for ours, other in zip(self.generate(prompts, len(replies[0])), replies, strict=True):
            pairs = zip(ours, other, strict=True)
            same += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return Agreement(tokens=sum(map(len, replies)), same=same)

    def generate(self, prompts: Sequence[Prompt], max_tokens: int) -> list[list[int]]:
        """The greedy tokens of each prompt."""
        requests = self._requests(prompts, max_tokens)
        replies: dict[str, list[int]] = {request.id: [] for request in requests}
        for step in self.engine.steps(*requests):
            for token in tokens_of(step):
                replies[token.request_id].append(token.id)
        return list(replies.values())

    def _requests(self, prompts: Sequence[Prompt], max_tokens: int) -> list[GenerationRequest]:
        return [
            GenerationRequest(f"bench-{next(self._ids)}", prompt, max_tokens, sampling=GREEDY)
            for prompt in prompts
        ]


def tokens_of(step: Step) -> list[Token]:
    """What a step generated. Raises GenerationFailed for a request that ended with an error."""
    for output in step.outputs:
        if isinstance(output, Finish) and output.error:
            raise GenerationFailed(output.error)
    return [output for output in step.outputs if isinstance(output, Token)]


class Theirs:
    """transformers' own model and `generate`. Satisfies `Side`."""

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        transformers = import_module("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, local_files_only=True, use_safetensors=True
        ).eval()
        # No end id and no penalty: both sides generate exactly what is asked, greedily.
        self.model.generation_config = transformers.GenerationConfig(
            do_sample=False, use_cache=True, eos_token_id=None, pad_token_id=0
        )

    def prefilling(self, prompts: Sequence[Prompt]) -> Figures:
        for prompt in prompts:
            start = perf_counter()
            self._generate(torch.tensor([prompt]), 1, None)
            yield len(prompt) / (perf_counter() - start)

    def decoding(self, prompts: Sequence[Prompt], new_tokens: int) -> Figures:
        """From the first new token of a run to its last: time(N + 1 tokens) - time(1)."""
        ids, cache = torch.tensor(prompts), None
        while True:
            ids, cache, times = self._generate(ids, new_tokens + 1, cache)
            yield new_tokens * len(prompts) / (times[-1] - times[0])

    def _generate(
        self, ids: torch.Tensor, max_tokens: int, cache: object
    ) -> tuple[torch.Tensor, object, list[float]]:
        """All ids so far, the cache that holds them, and when each new one was there."""
        times: list[float] = []

        def clock(ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
            """A stopping criterion, which `generate` asks after each token, and never stops."""
            times.append(perf_counter())
            return torch.zeros(len(ids), dtype=torch.bool)

        with warnings.catch_warnings():
            # 5.24 would like `cache`, which earlier releases of 5 do not know.
            warnings.simplefilter("ignore", FutureWarning)
            out = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                past_key_values=cache,
                max_new_tokens=max_tokens,
                stopping_criteria=[clock],
                return_dict_in_generate=True,
            )
        return out.sequences, out.past_key_values, times

    @torch.inference_mode()
    def forced(self, prompts: Sequence[Prompt], replies: Sequence[list[int]]) -> list[torch.Tensor]:
        """Of each reply `(R, V)` float32: the logits from which its R tokens would be chosen."""
        found = []
        for prompt, reply in zip(prompts, replies, strict=True):
            logits = self.model(torch.tensor([prompt + reply])).logits[0]
            found.append(logits[len(prompt) - 1 : -1].float())
        return found

    def agreement(self, prompts: Sequence[Prompt], replies: list[list[int]]) -> Agreement:
        """How many reply tokens are this model's own greedy choice after the same tokens.

        The replies are forced, so that one difference does not make all that follow differ.
        """
        pairs = zip(self.forced(prompts, replies), replies, strict=True)
        same = sum(int((logits.argmax(-1) == torch.tensor(reply)).sum()) for logits, reply in pairs)
        return Agreement(tokens=sum(len(reply) for reply in replies), same=same)


def encode(chat: ChatModel, text: str) -> Prompt:
    """A user's words as a server would read them; as they are, without a chat template."""
    if chat.template is None:
        return list(chat.tokenizer.opening_ids + chat.tokenizer.encode(text))
    messages = [{"role": "user", "content": text}]
    return render(PromptRequest.parse({"model": chat.name, "messages": messages}), chat).ids


def make_prompts(tokenizer: Tokenizer, number: int, tokens: int) -> list[Prompt]:
    """Different generated texts, cut to exactly so many ids; no length is another's prefix."""
    texts = [prompts.words(tokens, seed=tokens * 1000 + place) for place in range(number)]
    return [list(tokenizer.encode(text))[:tokens] for text in texts]
