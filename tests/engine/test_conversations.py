"""Conversations that share, branch and shorten prefixes: warm, cold, preempted, chunked, batched.

The oracle is each prompt alone, computed whole in a fresh engine whose prefix cache is off.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import CacheMark, GenerationRequest, SamplingParams, Token
from minimsg.errors import ModelNotFound
from minimsg.loading import load_engine

from ..models.checkpoints import save_checkpoint  # noqa: TID252 tests have no absolute name

NUM_TOKENS = 4
GREEDY = SamplingParams(temperature=0)
Said = list[list[Token]]  # of each prompt
WAYS: dict[str, dict[str, Any]] = {
    "warm": {},
    "in chunks": {"max_step_tokens": 11},
    "in 8 pages": {"num_pages": 8},
    "in chunks, in 8 pages": {"max_step_tokens": 11, "num_pages": 8},
    "one by one": {"max_sequences": 1, "num_pages": 8},
}


def conversations() -> list[list[int]]:
    """Prompts of 1 to 120 ids; most are made of one before them, longer, shorter or otherwise."""
    numbers = random.Random(1)
    prompts = [ids(numbers, 32)]
    for _ in range(5):
        before = numbers.choice(prompts)
        kept = before[: numbers.choice((len(before), 16 * numbers.randint(0, 4), len(before) - 1))]
        prompts.append((kept + ids(numbers, numbers.choice((0, 1, 16, 23))))[:120] or [1])
    a, b, c = (ids(numbers, 20) for _ in range(3))
    full = ids(numbers, 48)  # fills three pages
    return [*prompts, a + b, a, a + c, full, full]


def ids(numbers: random.Random, n: int) -> list[int]:
    return [numbers.randrange(128) for _ in range(n)]


@pytest.fixture(scope="module", params=["qwen3", "qwen2", "llama"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(path, request.param)
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["", "deterministic"])
def is_exact(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def cold(folder: Path, is_exact: bool) -> Said:
    engine = open_engine(folder, is_exact, no_prefix_cache=True)
    return [alone(engine, prompt) for prompt in conversations()]


@pytest.mark.parametrize("way", WAYS)
def test_the_way_in_which_a_prompt_is_computed_changes_nothing(
    folder: Path, is_exact: bool, cold: Said, way: str
) -> None:
    prompts = conversations()
    engine = open_engine(folder, is_exact, **WAYS[way])
    assert_same(together(engine, prompts), cold, is_exact)
    assert_same(together(engine, prompts), cold, is_exact)  # what is left of them is found


def test_eight_equal_prompts_in_a_small_pool_all_say_what_one_does(
    folder: Path, is_exact: bool
) -> None:
    prompt = ids(random.Random(5), 40)
    expected = alone(open_engine(folder, is_exact, no_prefix_cache=True), prompt, 30)
    engine = open_engine(folder, is_exact, num_pages=8)
    assert_same(together(engine, [prompt] * 8, 30), [expected] * 8, is_exact)
    assert engine.scheduler.num_preemptions


def test_a_prompt_whose_pages_were_given_away_is_computed_again(
    folder: Path, is_exact: bool
) -> None:
    engine = open_engine(folder, is_exact, num_pages=8)
    first, *others = (ids(random.Random(seed), 100) for seed in range(3))
    said = alone(engine, first)
    for other in others:
        alone(engine, other)
    assert engine.add(request("again", first)).reused == 0
    engine.cancel("again")
    assert_same([alone(engine, first)], [said], is_exact)


@pytest.mark.weights
def test_the_trained_model_says_the_same_warm_and_cold_and_under_pressure() -> None:
    try:
        folder = hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    system = "You are a careful assistant. You answer in one short sentence, in English. " * 2
    turns = [
        "What is the capital of France?",
        "Count to five.",
        "",
        "What is the capital of Spain?",
    ]
    prompts = [tokenizer.encode(system + turn).ids for turn in turns]
    settings = {"max_context": 128, "max_step_tokens": 24}
    cold_engine = open_engine(folder, False, no_prefix_cache=True, num_pages=64, **settings)
    expected = [alone(cold_engine, prompt) for prompt in prompts]
    for num_pages in (8, 64):
        engine = open_engine(folder, False, num_pages=num_pages, **settings)
        for _ in range(2):
            assert_same(together(engine, prompts), expected, is_exact=False)


def open_engine(folder: Path, is_exact: bool, **settings: Any) -> Engine:
    return load_engine(folder, EngineConfig(dtype="float32", deterministic=is_exact, **settings))


def request(id: str, prompt: list[int], max_tokens: int = NUM_TOKENS) -> GenerationRequest:
    marks = (CacheMark(len(prompt), 300),)
    return GenerationRequest(id, prompt, max_tokens, sampling=GREEDY, marks=marks)


def alone(engine: Engine, prompt: list[int], max_tokens: int = NUM_TOKENS) -> list[Token]:
    return together(engine, [prompt], max_tokens)[0]


def together(engine: Engine, prompts: list[list[int]], max_tokens: int = NUM_TOKENS) -> Said:
    """All at once, with every check in every step."""
    said: dict[str, list[Token]] = {f"r{n}": [] for n in range(len(prompts))}
    for id, prompt in zip(said, prompts, strict=True):
        engine.add(request(id, prompt, max_tokens))
    while engine.has_work:
        for output in tokens_of(engine):
            said[output.request_id].append(output)
        engine.scheduler.check()
    assert engine.pool.num_used == 0
    return list(said.values())


def tokens_of(engine: Engine) -> Iterator[Token]:
    return (output for output in engine.step() if isinstance(output, Token))


def assert_same(said: Said, expected: Said, is_exact: bool) -> None:
    """Equal ids; equal log probabilities too, to the last bit if that was asked for."""
    for one, other in zip(said, expected, strict=True):
        assert [token.id for token in one] == [token.id for token in other]
        numbers = [token.logprob for token in other]
        close = numbers if is_exact else pytest.approx(numbers, abs=1e-4)
        assert [token.logprob for token in one] == close
