"""Servers as sides, with a stand-in for llama.cpp's and a tiny engine of ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from minimsg.bench.sample import Sample
from minimsg.bench.servers import llama_server
from minimsg.bench.serving import Rendered, Served, decode_rate
from minimsg.bench.settings import Shapes, VersusSettings
from minimsg.errors import ConfigError

from . import stand_in

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> VersusSettings:
    """Those of a stand-in that can be started."""
    folder = tmp_path_factory.mktemp("llama")
    run = f"cd {ROOT} && exec {sys.executable} -m tests.bench.llama_server"
    program, gguf = folder / "llama-server", folder / "model.gguf"
    program.write_text(f'#!/bin/sh\n{run} "$@"\n')
    program.chmod(0o755)
    gguf.write_bytes(b"GGUF")
    return VersusSettings(llama_server=str(program), gguf=gguf)


@pytest.fixture(scope="module")
def served(settings: VersusSettings) -> Iterator[Served]:
    with llama_server(settings, Shapes(), threads=1) as running:
        yield running


def test_the_rate_is_of_what_comes_after_the_first_token_of_all() -> None:
    """Two replies of 5 and 3 tokens between 1 s and 3 s: 4 + 2 more tokens in 2 s."""
    samples = [
        Sample([1.0, 1.5, 2.0, 2.5, 3.0], 3.1, 100, 5),
        Sample([1.2, 2.0, 2.8], 2.9, 100, 3),
    ]
    assert decode_rate(samples) == pytest.approx(3.0)
    with pytest.raises(ConfigError, match="too short"):
        decode_rate([Sample([1.0], 1.1, 100, 1)])


def test_a_server_that_was_started_is_asked_by_the_model_that_it_lists(served: Served) -> None:
    assert served.model == "stand-in"
    assert all(rate > 0 for rate in islice(served.decoding(["a b", "c d"], 3), 2))


def test_prefill_is_the_servers_own_count_by_its_time_to_the_first_token(served: Served) -> None:
    (rate,) = served.prefilling(["some words"])
    assert 0 < rate < stand_in.INPUT_TOKENS / 1e-4


def test_texts_have_the_length_that_the_server_counts(served: Served) -> None:
    texts = served.texts(3, 50)
    assert len(set(texts)) == 3
    assert {10 + 2 * len(text.split()) for text in texts} == {50}


def test_a_server_that_cannot_load_its_file_is_told_in_its_own_words(
    settings: VersusSettings, tmp_path: Path
) -> None:
    broken = tmp_path / "llama-server"
    broken.write_text("#!/bin/sh\necho no such tensor; exit 1\n")
    broken.chmod(0o755)
    asked = VersusSettings(llama_server=str(broken), gguf=settings.gguf)
    with pytest.raises(ConfigError, match="no such tensor"), llama_server(asked, Shapes(), 1):
        pytest.fail("it is not served")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (VersusSettings(), "--llama-server"),
        (VersusSettings(llama_server="/some/program"), "--gguf"),
        (VersusSettings(llama_server="http://127.0.0.1:9"), "lists no model"),
    ],
)
def test_what_is_missing_is_named(asked: VersusSettings, why: str) -> None:
    with pytest.raises(ConfigError, match=why), llama_server(asked, Shapes(), 1):
        pytest.fail("it is not served")


class Counting:
    """An engine's side that says how often it began anew."""

    def __init__(self) -> None:
        self.begun = 0

    def decoding(self, prompts: list[list[int]], new_tokens: int) -> Iterator[float]:
        self.begun += 1
        yield from (float(len(prompts)), 0.0)


def test_an_engine_beside_a_server_begins_each_round_after_the_prompts() -> None:
    counting = Counting()
    side = Rendered(counting, lambda text: [len(text)])  # type: ignore[arg-type]
    assert list(islice(side.decoding(["a", "b"], 4), 3)) == [2.0, 2.0, 2.0]
    assert counting.begun == 3
