"""The trained default model: our greedy tokens are those of transformers, and of no cache at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from torch import Tensor

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.errors import ModelNotFound
from minimsg.kernels.contract import Layout, Pages
from minimsg.load import load_engine
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


@pytest.fixture(scope="module", autouse=True)
def all_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def prompts(folder: Path) -> list[list[int]]:
    """Each prompt as the one-string ChatML that the model was trained on, by the tokenizer alone."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    chatml = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    return [tokenizer.encode(chatml.format(text), add_special_tokens=False).ids for text in PROMPTS]


@pytest.fixture(scope="module")
def oracle(folder: Path, prompts: list[list[int]]) -> list[list[int]]:
    """What transformers continues each prompt with, greedily, in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    continued = []
    for ids in prompts:
        output = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=NUM_TOKENS,
            do_sample=False,
        )
        continued.append(output[0, len(ids) :].tolist())
    return continued


@pytest.fixture(scope="module")
def engine(folder: Path) -> Engine:
    return load_engine(folder, EngineConfig(dtype="float32", num_pages=512))


def end_ids(folder: Path) -> frozenset[int]:
    return frozenset([json.loads((folder / "config.json").read_text())["eos_token_id"]])


def test_greedy_tokens_are_those_of_transformers(
    engine: Engine, folder: Path, prompts: list[list[int]], oracle: list[list[int]]
) -> None:
    for ids, expected in zip(prompts, oracle, strict=True):
        tokens = engine.generate(ids, max_tokens=NUM_TOKENS, end_ids=end_ids(folder))
        assert [token.id for token in tokens] == expected


def test_greedy_tokens_are_those_of_a_forward_without_a_cache(
    engine: Engine, prompts: list[list[int]]
) -> None:
    ids = list(prompts[0])
    tokens = engine.generate(ids, max_tokens=12)
    for token in tokens:
        assert int(uncached_logits(engine, ids).argmax()) == token.id
        ids.append(token.id)


@torch.inference_mode()
def uncached_logits(engine: Engine, ids: list[int]) -> Tensor:
    """The logits `(V,)` after `ids`, all of them computed at once into new pages."""
    model, count = engine.runner.model, len(ids)
    page_size = 16
    num_pages = -(-count // page_size)
    inputs = Inputs(
        ids=torch.tensor(ids),
        positions=torch.arange(count),
        sample_rows=torch.tensor([count - 1]),
        layout=Layout(
            query_starts=[0, count],
            context_lens=[count],
            page_tables=torch.arange(num_pages)[None],
            slots=torch.arange(count),
        ),
    )
    cache = [
        Pages(*(torch.zeros(num_pages, page_size, spec.num_kv_heads, spec.head_dim) for _ in "kv"))
        for spec in model.cache_specs
    ]
    return model(inputs, cache)[0]
