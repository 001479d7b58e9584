"""The trained default model: our greedy tokens are those of transformers, and of no cache.

Greedy tokens are compared teacher-forced: an oracle that reads prompt and reply at once
must put each token of the reply first. By induction that is the oracle's own greedy
reply, at the price of one forward instead of 64.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.errors import ModelNotFound
from minimsg.kernels.contract import Layout, Pages
from minimsg.loading import load_engine
from minimsg.models.contract import Inputs

pytestmark = pytest.mark.weights

NUM_TOKENS = 64
PROMPTS = [
    "What is the capital of France?",
    "Write a Python function that reverses a string.",
    "List the numbers from 1 to 20, separated by commas.",
    "Explain in two sentences why the sky is blue. Añade una frase en español 🙂.",
    "Summarize this text. " + "The quick brown fox jumps over the lazy dog near the river. " * 20,
]


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def engine(folder: Path) -> Engine:
    return load_engine(folder, EngineConfig(dtype="float32", num_pages=512))


@pytest.fixture(scope="module")
def prompts(folder: Path) -> list[list[int]]:
    """Each prompt in the ChatML of the model's training, as one string through the tokenizer."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    chatml = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    return [tokenizer.encode(chatml.format(text), add_special_tokens=False).ids for text in PROMPTS]


@pytest.fixture(scope="module")
def replies(engine: Engine, folder: Path, prompts: list[list[int]]) -> list[list[int]]:
    """Our greedy reply to each prompt, one token a step through the paged cache."""
    end_id = json.loads((folder / "config.json").read_text())["eos_token_id"]
    return [
        [
            token.id
            for token in engine.generate(ids, max_tokens=NUM_TOKENS, end_ids=frozenset([end_id]))
        ]
        for ids in prompts
    ]


def test_greedy_tokens_are_those_of_transformers(
    folder: Path, prompts: list[list[int]], replies: list[list[int]]
) -> None:
    oracle = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for prompt, reply in zip(prompts, replies, strict=True):
        with torch.inference_mode():
            logits = oracle(torch.tensor([prompt + reply])).logits[0]
        assert logits[len(prompt) - 1 : -1].argmax(dim=-1).tolist() == reply


def test_greedy_tokens_are_those_of_a_forward_without_a_cache(
    engine: Engine, prompts: list[list[int]], replies: list[list[int]]
) -> None:
    for prompt, reply in zip(prompts, replies, strict=True):
        assert greedy_next(engine, prompt + reply)[len(prompt) - 1 : -1] == reply


def test_the_replies_make_sense(folder: Path, replies: list[list[int]]) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    capital, code, numbers, *_ = (tokenizer.decode(reply) for reply in replies)
    assert "Paris" in capital
    assert "def " in code
    assert "1, 2, 3" in numbers


@torch.inference_mode()
def greedy_next(engine: Engine, ids: list[int]) -> list[int]:
    """The likeliest id after each of `ids`, all computed at once into new pages."""
    model, count, page_size = engine.runner.model, len(ids), 16
    num_pages = -(-count // page_size)
    layout = Layout(
        query_starts=[0, count],
        context_lens=[count],
        page_tables=torch.arange(num_pages)[None],
        slots=torch.arange(count),
    )
    inputs = Inputs(torch.tensor(ids), torch.arange(count), torch.arange(count), layout)
    cache = [
        Pages(*(torch.zeros(num_pages, page_size, spec.num_kv_heads, spec.head_dim) for _ in "kv"))
        for spec in model.cache_specs
    ]
    return model(inputs, cache).argmax(dim=-1).tolist()
