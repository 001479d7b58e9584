"""Checkpoints that come without a download: `tiny`, `scripted` and `tiny-vl`.

`tiny` is a qwen3 model of random weights, for tests and for the notebooks: it talks
nonsense, always the same. `scripted` has no weights at all: the model family
`models/scripted.py` spells the tapes in its config.json, token by token, which gives
exact answers to test a client with. Both are made on the spot, and read and write bytes: id b
is byte b, and three control tokens follow. `tiny-vl` is trained, and lies in the package
(`tiny_vl/`). Needs neither torch nor numpy. Knows only how to fill a folder; `hub/` decides
where.
"""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from minimsg.models.config import ModelConfig
from minimsg.models.parameters import Shape, parameter_shapes
from minimsg.models.tensors import TensorHeader, write_safetensors
from minimsg.text.token_bytes import BYTE_ALPHABET
from minimsg.tiny_vl.checkpoint import copy_model

CONTROL_TOKENS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, TURN_START, TURN_END = range(256, 259)
VOCAB_SIZE: Final = 259
GENERATION_PROMPT: Final = "<|im_start|>assistant\n"
THINKING_TOKENS: Final = ("<think>", "</think>")  # of `scripted` only, if a tape has one
CHATML: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
THINKING_CHATML: Final = CHATML.replace(
    "message['content']",
    "('<think>' + message['reasoning_content'] + '</think>' if message['reasoning_content'] "
    "else '') + message['content']",
)
DEFAULT_TAPES: Final = (
    "Hello! I am a scripted model: I say the same words to everyone, and I say them well.",
    "You asked again, so here is my second line. Ünïcödé travels safely: 你好, 👋.",
)
TINY_CONFIG: Final[Mapping[str, object]] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "attention_bias": False,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "rope_scaling": None,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": TURN_END,
    "torch_dtype": "float32",
}
SEED: Final = 7
SPREAD: Final = 0.125 * 3**0.5  # uniform, standard deviation 1 / sqrt(hidden_size)


def write_tiny(folder: Path) -> None:
    """Fill `folder` with the tiny model; every byte is the same on every machine."""
    shapes = parameter_shapes(ModelConfig.from_dict(TINY_CONFIG))
    headers = {name: TensorHeader("F32", shape) for name, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", headers, _random_weights(shapes))
    _write_chat_files(folder, TINY_CONFIG, byte_tokenizer(), CHATML)


def write_scripted(
    folder: Path,
    tapes: Sequence[str] = DEFAULT_TAPES,
    *,
    window: int = 8192,
    template: str | None = None,
) -> None:
    """Fill `folder`, which may not exist yet, with a model that says the first tape, then the next.

    A control token in a tape, such as `<|im_end|>`, becomes its id; `window` is the
    context length in tokens. With `<think>` or `</think>` in a tape the two are control
    tokens, and `template`, if none is given, is one of a model that thinks. What a template
    writes after the generation prompt is the beginning of the tape.
    """
    folder.mkdir(parents=True, exist_ok=True)
    thinks = any(token in tape for token in THINKING_TOKENS for tape in tapes)
    tokenizer = byte_tokenizer(thinks=thinks)
    config = {
        "model_type": "scripted",
        "vocab_size": tokenizer.get_vocab_size(),
        "start_ids": tokenizer.encode(GENERATION_PROMPT).ids,
        "tapes": [tokenizer.encode(tape).ids for tape in tapes],
        "end_id": TURN_END,
        "eos_token_id": TURN_END,
        "max_position_embeddings": window,
    }
    _write_chat_files(
        folder, config, tokenizer, template or (THINKING_CHATML if thinks else CHATML)
    )


WRITERS: Final[Mapping[str, Callable[[Path], None]]] = {
    "tiny": write_tiny,
    "scripted": write_scripted,
    "tiny-vl": copy_model,
}


def byte_tokenizer(*, thinks: bool = False) -> Tokenizer:
    """Byte b is id b; the control tokens follow, and then, if it `thinks`, the tags of thinking."""
    tokenizer = Tokenizer(BPE(dict(BYTE_ALPHABET), []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in CONTROL_TOKENS]
    )
    if thinks:  # not special: they are shown in text, where a parser looks for them
        tokenizer.add_tokens([AddedToken(token, normalized=False) for token in THINKING_TOKENS])
    return tokenizer


def _random_weights(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, memoryview]]:
    """Norms 1, all else uniform. `random.random` gives the same numbers in every Python."""
    generator = random.Random(SEED)
    for name, shape in shapes.items():
        if name.endswith("norm.weight"):
            values = array("f", [1.0] * prod(shape))
        else:
            values = array("f", ((2 * generator.random() - 1) * SPREAD for _ in range(prod(shape))))
        yield name, memoryview(values)


def _write_chat_files(
    folder: Path, config: Mapping[str, object], tokenizer: Tokenizer, template: str
) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(template, "utf-8", newline="")
    ends = {"eos_token_id": TURN_END, "pad_token_id": END_OF_TEXT}
    tokens = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    files = {
        "config.json": config,
        "generation_config.json": ends,
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **tokens},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
