"""Pictures in the engine: however a prompt with some is run, its tokens are transformers'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from minimsg.config import EngineConfig
from minimsg.engine.encodings import Encodings
from minimsg.engine.engine import Engine
from minimsg.engine.graphs import DecodeGraphs
from minimsg.engine.places import axes_of
from minimsg.engine.types import (
    CacheCounts,
    Finish,
    FinishReason,
    GenerationRequest,
    ImageSpan,
    SamplingParams,
    Token,
)
from minimsg.errors import GenerationFailed, InvalidRequest
from minimsg.loading import load_engine
from minimsg.models.config import ModelConfig

from ..models.seeing_checkpoints import FAMILIES, picture, save_seeing  # noqa: TID252 no name
from ..models.seeing_run import SeeingRun, Words, request_of  # noqa: TID252 tests have no name
from .conftest import Run

GREEDY = SamplingParams(temperature=0)
NUM_TOKENS = 8
CATS, DOGS = picture(30, 40), picture(30, 40, seed=1)
PROMPTS: dict[str, list[Any]] = {
    "cats": [5, 6, CATS, 7, 8, 9],
    "dogs": [5, 6, DOGS, 7, 8, 9],
    "both": [5, 6, CATS, 7, 8, DOGS, 9, picture(60, 20, seed=2), 3],
    "text": list(range(1, 41)),
    "long": [*range(1, 41), picture(64, 64, seed=3), 11],
}


class Case:
    """A checkpoint, its greedy tokens by transformers, and engines on it."""

    def __init__(self, folder: Path, family: str) -> None:
        self.folder = folder
        oracle = save_seeing(folder, family)
        self.config = ModelConfig.from_folder(folder)
        self.expected: dict[str, list[int]] = {}
        for name, words in PROMPTS.items():
            ids = list(self.request(name).prompt_ids)
            pictures = [word for word in words if not isinstance(word, int)]
            for _ in range(NUM_TOKENS):
                ids.append(int(oracle.logits(ids, pictures)[-1].argmax()))
            self.expected[name] = ids[-NUM_TOKENS:]

    def request(self, name: str, **settings: object) -> GenerationRequest:
        words: Words = PROMPTS[name.partition("@")[0]]
        return request_of(name, words, self.config, sampling=GREEDY, **settings)

    def engine(self, **settings: Any) -> Engine:
        config = EngineConfig(**{"dtype": "float32", "num_pages": 64, **settings})
        return load_engine(self.folder, config)


@pytest.fixture(scope="module")
def case_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    return cache(lambda family: Case(tmp_path_factory.mktemp(family), family))


@pytest.fixture
def case(case_of: Callable[[str], Case]) -> Case:
    return case_of("qwen3_vl")


def tokens_of(said: dict[str, list[Any]]) -> dict[str, list[int]]:
    return {
        name: [each.id for each in outputs if isinstance(each, Token)]
        for name, outputs in said.items()
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_step_tokens": 7},
        {"max_step_tokens": 7, "num_pages": 32},
        {"speculate": 4, "max_sequences": 2},
        {"deterministic": True},
        {"deterministic": True, "kernel": "tiled", "max_step_tokens": 9},
    ],
    ids=str,
)
def test_greedy_tokens_are_those_of_transformers(
    family: str, settings: dict[str, Any], case_of: Callable[[str], Case], run: Run
) -> None:
    case = case_of(family)
    said = run(case.engine(**settings), *(case.request(name) for name in PROMPTS))
    assert tokens_of(said) == case.expected


def test_a_preempted_sequence_sees_its_picture_again(case: Case, run: Run) -> None:
    """Six of these prompts fit, of 79 tokens each, until they grow: some give their pages back."""
    engine = case.engine(num_pages=32, no_prefix_cache=True)
    names = [f"long@{n}" for n in range(9)]
    said = run(engine, *(case.request(name) for name in names))
    assert engine.scheduler.num_preemptions > 0
    assert len(case.request("long").prompt_ids) == 79
    assert tokens_of(said) == dict.fromkeys(names, case.expected["long"])


def test_the_same_picture_is_found_in_the_cache_and_another_is_not(case: Case, run: Run) -> None:
    """Two whole pages of `cats` are the same for the same picture; of `dogs` none is."""
    engine = case.engine()
    run(engine, case.request("cats"))
    counts = {name: engine.add(case.request(name)) for name in ("cats", "dogs")}
    assert counts["cats"] == CacheCounts(reused=16)
    assert counts["dogs"] == CacheCounts()


def test_what_is_reused_gives_the_same_tokens(case: Case, run: Run) -> None:
    engine = case.engine()
    for name in ("cats", "dogs", "cats@again", "both", "both@again"):
        said = run(engine, case.request(name))
        assert tokens_of(said)[name] == case.expected[name.partition("@")[0]]


class Seen:
    """Counts what a tower was shown."""

    def __init__(self, engine: Engine) -> None:
        self.pictures: list[bytes] = []
        self._see = engine.runner.model.see  # type: ignore[attr-defined]
        engine.runner.encodings = Encodings(self)

    def see(self, pixels: bytes, rows: int, columns: int) -> Tensor:
        self.pictures.append(pixels)
        seen: Tensor = self._see(pixels, rows, columns)
        return seen


def test_a_picture_is_seen_once_by_each_tenant_however_many_steps_it_takes(
    case: Case, run: Run
) -> None:
    engine = case.engine(max_step_tokens=7, no_prefix_cache=True)
    seen = Seen(engine)
    run(engine, case.request("cats"), case.request("both"), case.request("cats@again"))
    assert len(seen.pictures) == 3
    run(engine, case.request("cats", tenant="other"))
    assert len(seen.pictures) == 4
    engine.reset()
    run(engine, case.request("cats"))
    assert len(seen.pictures) == 5


def test_a_picture_found_in_the_prefix_cache_is_not_seen(case: Case, run: Run) -> None:
    engine = case.engine()
    words: Words = [CATS, *range(1, 30)]
    first, second = (
        request_of(id, words, case.config, sampling=GREEDY) for id in ("first", "second")
    )
    run(engine, first)
    seen = Seen(engine)
    run(engine, second)
    assert seen.pictures == []


def test_text_alone_has_no_axes_and_beside_a_picture_all_rows_have(case: Case) -> None:
    engine = case.engine()
    engine.add(case.request("text"))
    engine.step()
    assert engine.batch is not None
    assert (engine.batch.axes, engine.batch.pictures) == ([], [])
    engine.add(case.request("cats"))
    engine.step()
    assert engine.batch.axes[0][0] == 40  # the text decodes its first token
    assert [len(axis) for axis in engine.batch.axes] == [len(engine.batch.input_ids)] * 3


class BrokenTower:
    def see(self, pixels: bytes, rows: int, columns: int) -> Tensor:
        if pixels == b"fails":
            raise RuntimeError("the tower fell")
        return torch.full((1, rows * columns, 64), torch.nan)


def test_a_picture_that_gives_no_numbers_ends_only_its_own_request(case: Case, run: Run) -> None:
    engine = case.engine()
    good, bad = case.request("text"), case.request("cats")
    engine.runner.encodings = Encodings(BrokenTower())
    (span,) = bad.images
    worse = replace(bad, id="worse", images=(replace(span, pixels=b"fails", digest=b"other"),))
    said = run(engine, good, bad, worse)
    assert tokens_of(said)["text"] == case.expected["text"]
    for name, why in (("cats", "no numbers"), ("worse", "the tower fell")):
        (finish,) = said[name][-1:]
        assert isinstance(finish, Finish)
        assert finish.reason is FinishReason.ERROR
        assert why in str(finish.error)


class FlatTower:
    """Ten tokens of 100 bytes, whatever it sees."""

    def see(self, pixels: bytes, rows: int, columns: int) -> Tensor:
        return torch.zeros(1, 10, 25)


def test_what_was_seen_is_bounded_and_the_last_stays_however_large() -> None:
    encodings = Encodings(FlatTower(), max_bytes=2500)
    one, two, three = (ImageSpan(0, 10, digest) for digest in (b"1", b"2", b"3"))
    first = encodings.of("a", one)
    assert (first.nbytes, encodings.num_bytes) == (1000, 1000)
    assert encodings.of("a", one) is first
    encodings.of("a", two)
    encodings.of("a", one)
    encodings.of("a", three)
    assert encodings.num_bytes == 2000
    assert encodings.of("a", one) is first  # the second was used longest ago
    large = Encodings(FlatTower(), max_bytes=10)
    kept = large.of("a", one)
    assert large.of("a", one) is kept
    assert large.of("b", one) is not kept


def test_numbers_that_are_none_are_not_kept() -> None:
    encodings = Encodings(BrokenTower())
    for _ in range(2):
        with pytest.raises(GenerationFailed):
            encodings.of("a", ImageSpan(0, 1, b"1"))
    assert encodings.num_bytes == 0


def test_positions_of_two_pictures_by_hand() -> None:
    """`x A A A A A A y B B z`: A is 2 rows of 3, so y stands at 1 + 3; B is 2 rows of 1."""
    images = (ImageSpan(1, 7, b"A", 2, 3), ImageSpan(8, 10, b"B", 2, 1))
    expected = (
        [0, 1, 1, 1, 1, 1, 1, 4, 5, 5, 7, 8],
        [0, 1, 1, 1, 2, 2, 2, 4, 5, 6, 7, 8],
        [0, 1, 2, 3, 1, 2, 3, 4, 5, 5, 7, 8],
    )
    assert axes_of(images, 0, 12) == expected
    for start in range(12):
        for stop in range(start, 12):
            assert axes_of(images, start, stop) == tuple(axis[start:stop] for axis in expected)


def test_a_graph_takes_no_step_with_images(case: Case) -> None:
    run = SeeingRun(case.engine().runner.model, case.config)
    run.open("cats", PROMPTS["cats"])
    run.open("text", PROMPTS["text"])
    graphs = DecodeGraphs(run.runner.model, run.runner.cache, torch.device("cpu"), lambda _: None)  # type: ignore[arg-type, return-value]
    can_run = []
    for name in ("text", "cats"):
        run.step({name: 1})
        assert run.batch is not None
        can_run.append(graphs.can_run(run.runner._inputs(run.batch)))
    assert can_run == [True, False]


@pytest.mark.parametrize(
    ("images", "why"),
    [
        ((ImageSpan(2, 4, b"", 2, 2),), "has 2 ids"),
        ((ImageSpan(2, 8, b"", 2, 3),), "do not lie in the prompt"),
        ((ImageSpan(2, 2, b"", 0, 2),), "do not lie in the prompt"),
        ((ImageSpan(2, 4, b"", 1, 2), ImageSpan(3, 5, b"", 1, 2)), "do not lie in the prompt"),
    ],
)
def test_images_that_do_not_fit_the_prompt_are_refused(
    images: tuple[ImageSpan, ...], why: str, case: Case
) -> None:
    with pytest.raises(InvalidRequest, match=why):
        case.engine().check(GenerationRequest("r", [1] * 6, 1, images=images))


def test_a_model_without_a_tower_refuses_images(folder: Path) -> None:
    engine = load_engine(folder, EngineConfig(num_pages=8))
    request = GenerationRequest("r", [1] * 6, 1, images=(ImageSpan(2, 4, b"", 1, 2),))
    with pytest.raises(InvalidRequest, match="does not read images"):
        engine.check(request)
