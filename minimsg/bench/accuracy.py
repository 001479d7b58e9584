"""What a number format costs in accuracy: our logits, or a peer's, beside our own in float32.

Replies are float32's greedy ones to short questions, by the plainest kernel; they are then
forced on whoever is measured, so that one difference does not make all that follow differ,
and every token's whole distribution is compared. Ours is measured where it is timed: by
the engine's own steps, several sequences decoding at once. Keeps nothing but sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.bench.findings import Accuracy
from minimsg.bench.replaced import replaced
from minimsg.bench.rounds import Prompt
from minimsg.bench.sides import tokens_of
from minimsg.engine.engine import GREEDY, Engine
from minimsg.engine.types import Batch, GenerationRequest

TOGETHER: Final = 4  # replies whose logits are held at once, 40 MB each for 200 x 49,152

Ids = list[int]


class Model(Protocol):
    """Whoever is measured."""

    def forced(self, prompts: Sequence[Prompt], replies: Sequence[Ids]) -> list[Tensor]:
        """Of each reply `(R, V)` float32: the logits from which its R tokens would be chosen."""


def measure_accuracy(
    reference: Engine,
    models: Mapping[str, Model],
    prompts: Sequence[Prompt],
    max_tokens: int,
    end_ids: frozenset[int],
) -> dict[str, Accuracy]:
    """Of each model, over the replies of `reference` to the prompts."""
    sums = {name: Sums() for name in models}
    truth = EngineLogits(reference)
    for start in range(0, len(prompts), TOGETHER):
        group = prompts[start : start + TOGETHER]
        replies, expected = truth.replies(group, max_tokens, end_ids)
        for name, model in models.items():
            for each, found in zip(expected, model.forced(group, replies), strict=True):
                sums[name].add(each, found)
    return {name: each.accuracy() for name, each in sums.items()}


class EngineLogits:
    """An engine whose logits are kept. Satisfies `Model`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._ids = count()

    def replies(
        self, prompts: Sequence[Prompt], max_tokens: int, end_ids: frozenset[int]
    ) -> tuple[list[Ids], list[Tensor]]:
        """Greedy replies, an end id included, and their logits."""
        return self._run(
            [
                GenerationRequest(self._name(), prompt, max_tokens, end_ids, GREEDY)
                for prompt in prompts
            ]
        )

    def forced(self, prompts: Sequence[Prompt], replies: Sequence[Ids]) -> list[Tensor]:
        said, logits = self._run(
            [
                GenerationRequest(
                    self._name(), prompt, len(reply), sampling=GREEDY, hook=Script(reply)
                )
                for prompt, reply in zip(prompts, replies, strict=True)
            ]
        )
        assert said == list(replies)
        return logits

    def _name(self) -> str:
        return f"accuracy-{next(self._ids)}"

    def _run(self, requests: list[GenerationRequest]) -> tuple[list[Ids], list[Tensor]]:
        rows: dict[str, list[Tensor]] = {request.id: [] for request in requests}
        said: dict[str, Ids] = {request.id: [] for request in requests}
        run = self.engine.runner.run

        def keep(batch: Batch) -> Tensor:
            logits = run(batch)
            for request_id, row in zip(batch.sample_ids, logits, strict=True):
                rows[request_id].append(row.clone())
            return logits

        with replaced(self.engine.runner, "run", keep):
            for step in self.engine.steps(*requests):
                for token in tokens_of(step):
                    said[token.request_id].append(token.id)
        return list(said.values()), [torch.stack(each) for each in rows.values()]


class Script:
    """A hook that says every token. Satisfies `TokenHook`."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        self.place = 0

    def mask(self) -> None:
        return None

    def forced(self) -> int:
        return self.ids[self.place]

    def advance(self, id: int) -> None:
        self.place += 1

    def rollback(self, n: int) -> None:
        self.place -= n


@dataclass
class Sums:
    """The differences of all places so far."""

    tokens: int = 0
    same: int = 0
    kl: float = 0.0
    difference: float = 0.0
    max_difference: float = 0.0
    num_logits: int = 0

    def add(self, truth: Tensor, logits: Tensor) -> None:
        """Of one reply, `(R, V)` each."""
        expected, found = F.log_softmax(truth.double(), -1), F.log_softmax(logits.double(), -1)
        difference = (truth - logits).abs()
        self.tokens += len(truth)
        self.same += int((truth.argmax(-1) == logits.argmax(-1)).sum())
        self.kl += float((expected.exp() * (expected - found)).sum())
        self.difference += float(difference.double().sum())
        self.max_difference = max(self.max_difference, float(difference.max()))
        self.num_logits += difference.numel()

    def accuracy(self) -> Accuracy:
        return Accuracy(
            tokens=self.tokens,
            kl=self.kl / self.tokens,
            mean_difference=self.difference / self.num_logits,
            max_difference=self.max_difference,
            agreement=self.same / self.tokens,
        )
