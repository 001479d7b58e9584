"""Model folders written by the tests, so that a clone without real data covers everything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.probe import probe
from minimsg.prompt.render import Prompt, render
from minimsg.prompt.template import ChatTemplate
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import MessagesRequest
from minimsg.text.token_bytes import BYTE_ALPHABET

CHATML: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
MERGES: Final = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("<", "|"), ("|", ">")]
ADDED: Final = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|user|>", "<|assistant|>"]

CONFIG: Final = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 4096,
    "eos_token_id": 0,
}

WriteModel = Callable[..., Path]
OpenModel = Callable[[str], ChatModel]


def added_token(id: int, text: str, **flags: bool) -> dict[str, object]:
    off = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id, "content": text, "special": text.startswith("<|"), **off, **flags}


def tokenizer_description(**flags: dict[str, bool]) -> dict[str, object]:
    """Byte-level BPE; `flags`: control string -> how it treats the text beside it."""
    tokens = [*sorted(BYTE_ALPHABET), *(left + right for left, right in MERGES)]
    added = [added_token(len(tokens) + n, t, **flags.get(t, {})) for n, t in enumerate(ADDED)]
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {**to_bytes, "use_regex": True},
        "post_processor": None,
        "decoder": {**to_bytes, "use_regex": True},
        "model": {
            **model,
            "vocab": {token: id for id, token in enumerate(tokens)},
            "merges": [f"{left} {right}" for left, right in MERGES],
        },
    }


@pytest.fixture
def write_model(tmp_path: Path) -> WriteModel:
    """Writes a model folder: template, flags of added tokens, fields of its JSON files."""

    def write(
        template: str | None = CHATML,
        flags: dict[str, dict[str, bool]] | None = None,
        **files: dict[str, object],
    ) -> Path:
        contents = {
            "config": CONFIG | files.get("config", {}),
            "generation_config": files.get("generation_config", {}),
            "tokenizer_config": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
            | files.get("tokenizer_config", {}),
            "tokenizer": tokenizer_description(**(flags or {})),
        }
        for name, content in contents.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        if template is not None:
            (tmp_path / "chat_template.jinja").write_text(template, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def chat(write_model: WriteModel) -> ChatModel:
    """The written model with a ChatML template."""
    return ChatModel.open(write_model(), "written")


@pytest.fixture
def open_model(write_model: WriteModel) -> OpenModel:
    """The written model with any template."""
    return lambda template: ChatModel.open(write_model(template), "written")


def prompt_of(chat: ChatModel, dialect: Dialect | None = None, **body: object) -> Prompt:
    """What the model reads of a request with the fields `body`; types are checked, no rules."""
    request = MessagesRequest.model_validate({"model": "m", "max_tokens": 1, **body})
    return render(request, chat, dialect or Dialect())


def shown(chat: ChatModel, prompt: Prompt) -> str:
    """The prompt's text, control tokens shown."""
    return b"".join(map(chat.tokenizer.token_bytes, prompt.ids)).decode()


@pytest.fixture(scope="session")
def qwen3(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ChatModel:
    """The published tokenizer, whose control tokens the published templates write."""
    folder = tmp_path_factory.mktemp("model") / "qwen3"
    shutil.copytree(test_data / "data" / "qwen3", folder)
    config = {**CONFIG, "model_type": "qwen3", "vocab_size": 151_936}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return replace(ChatModel.open(folder, "m"), max_context=1 << 20)


@pytest.fixture(scope="session")
def open_published(qwen3: ChatModel, test_data: Path) -> OpenModel:
    """The published tokenizer with any of the published templates."""

    @cache
    def opened(name: str) -> ChatModel:
        source = (test_data / "data" / "templates" / f"{name}.jinja").read_text("utf-8")
        controls = qwen3.tokenizer.control
        template = ChatTemplate(source, {"bos_token": "<|endoftext|>"}, controls)
        return replace(qwen3, template=template, traits=probe(template, controls))

    return opened
