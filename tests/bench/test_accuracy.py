"""The accuracy beside a speed: sums by hand, torch's own divergence, and an engine made wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.bench.accuracy import EngineLogits, Sums, measure_accuracy
from minimsg.bench.rounds import Prompt
from minimsg.builtin import TINY_CONFIG
from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.loading import load_engine

PROMPTS = [[5, 6, 7], [8, 9, 10, 11, 12], [13], [14, 15], [16, 17]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from minimsg import hub

    return hub.ensure("tiny", tmp_path_factory.mktemp("models"))


def engine(folder: Path) -> Engine:
    config = EngineConfig(dtype="float32", kernel="reference", device="cpu", num_pages=64)
    return load_engine(folder, config)


class Shifted:
    """An engine whose logits have something added, to one token or to all."""

    def __init__(self, engine: Engine, token: int | None, by: float) -> None:
        self.inner, self.token, self.by = EngineLogits(engine), token, by

    def forced(self, prompts: Sequence[Prompt], replies: Sequence[list[int]]) -> list[Tensor]:
        logits = self.inner.forced(prompts, replies)
        for each in logits:
            each[:, slice(None) if self.token is None else self.token] += self.by
        return logits


def test_divergence_is_torchs_own_and_differences_are_plain() -> None:
    torch.manual_seed(0)
    truth, found = torch.randn(7, 11), torch.randn(7, 11)
    sums = Sums()
    sums.add(truth[:3], found[:3])
    sums.add(truth[3:], found[3:])
    accuracy = sums.accuracy()
    oracle = F.kl_div(
        found.log_softmax(-1), truth.log_softmax(-1), reduction="batchmean", log_target=True
    )
    assert accuracy.kl == pytest.approx(float(oracle), rel=1e-5)
    assert accuracy.max_difference == pytest.approx(float((truth - found).abs().max()))
    assert accuracy.mean_difference == pytest.approx(float((truth - found).abs().mean()))
    same = (truth.argmax(-1) == found.argmax(-1)).float().mean()
    assert accuracy.agreement == pytest.approx(float(same))


def test_the_same_engine_agrees_with_itself_and_a_shifted_one_does_not(folder: Path) -> None:
    found = measure_accuracy(
        engine(folder),
        {
            "same": EngineLogits(engine(folder)),
            "all higher": Shifted(engine(folder), None, 2.0),
            "always 3": Shifted(engine(folder), 3, 100.0),
        },
        PROMPTS,
        max_tokens=6,
        end_ids=frozenset(),
    )
    assert {each.tokens for each in found.values()} == {5 * 6}
    assert (found["same"].max_difference, found["same"].agreement) == (0.0, 1.0)
    assert found["all higher"].kl == pytest.approx(0.0, abs=1e-6)
    assert found["all higher"].mean_difference == pytest.approx(2.0, rel=1e-4)
    assert found["always 3"].agreement < 0.5
    assert found["always 3"].kl > 10


def test_an_engine_keeps_nothing_of_it(folder: Path) -> None:
    used = engine(folder)
    before = used.runner.run
    EngineLogits(used).replies([[1, 2]], 2, frozenset())
    assert used.runner.run == before
    assert not used.has_work


def test_a_reply_ends_with_its_end_and_its_logits_are_those_of_its_tokens(folder: Path) -> None:
    logits = EngineLogits(engine(folder))
    ((reply,), _) = logits.replies([[1, 2, 3]], 5, frozenset())
    ((short,), (rows,)) = logits.replies([[1, 2, 3]], 5, frozenset({reply[1]}))
    assert short == reply[: reply.index(reply[1]) + 1]
    assert rows.argmax(-1).tolist() == short
    assert rows.shape == (len(short), TINY_CONFIG["vocab_size"])
