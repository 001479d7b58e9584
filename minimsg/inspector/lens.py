"""What the model's numbers say at one place of a request: the choice of a token, what was looked
at, what each layer would have said. As questions to the engine, and answers for the panes.

A question is a request that computes the prompt as far as its place, mostly from the pages that
are there, and a `Reading` of what is seen on the way (`engine/lens.py`). Answers are plain
numbers and bounded: heads times tokens, or layers times a few. Knows no HTTP; who asks:
`server/lens.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypedDict

import torch
from torch import Tensor

from minimsg.engine.draw import NUM_CANDIDATES, rank, uniform
from minimsg.engine.engine import Engine
from minimsg.engine.lens import Reading, question
from minimsg.engine.types import GenerationRequest
from minimsg.errors import InvalidRequest
from minimsg.models.contract import WatchedModel
from minimsg.models.points import point
from minimsg.text.tokenizer import Tokenizer

NUM_GUESSES: Final = 4  # of each layer
NUM_GROUPS: Final = 64  # of the ids that are no candidates
PARTS: Final = 1000  # attention is told in thousandths

Candidate = tuple[int, str, float]  # id, text, log probability


class ChoiceAnswer(TypedDict):
    """What a token is drawn from. `rest`: all other ids, in groups of about the same, as
    (how many, log probability of each)."""

    top: list[Candidate]
    rest: list[tuple[int, float]]
    number: float  # the random number of the token's place


class AttentionAnswer(TypedDict):
    """What the token at a position paid to each before it, head by head, in thousandths."""

    num_layers: int
    heads: list[list[int]]


class LayerGuess(TypedDict):
    """What a layer would say next, if it were the last."""

    layer: int
    top: list[Candidate]


class LensAnswer(TypedDict):
    """All layers."""

    layers: list[LayerGuess]


Answer = ChoiceAnswer | AttentionAnswer | LensAnswer


@dataclass(frozen=True, slots=True)
class Question:
    """A request to submit with the hooks of its reading; then `answer` is to be called."""

    request: GenerationRequest
    reading: Reading
    position: int
    answer: Callable[[], Answer]


class Lens:
    """One request, prompt and reply together, as the model of an engine sees it."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, whole: GenerationRequest) -> None:
        """`whole` has the ids of prompt and reply. Raises InvalidRequest: no points to look at."""
        model = engine.runner.model
        self._num_layers = len(model.cache_specs)
        if not isinstance(model, WatchedModel):
            raise InvalidRequest("", "this model has no layers that can be looked into")
        self._logits = model.logits
        self._tokenizer = tokenizer
        self._whole = whole

    def choice(self, position: int) -> Question:
        """What the token at `position` was drawn from. Raises InvalidRequest."""
        name = point(self._num_layers - 1, "hook_resid_post")
        reading = self._reading([name], position - 1, of=self._logits)
        seed = self._whole.sampling.seed or 0

        def answer() -> ChoiceAnswer:
            logprobs = torch.log_softmax(reading.values(name)[0], dim=-1)
            values, ids = rank(logprobs[None], min(len(logprobs), NUM_CANDIDATES))
            return ChoiceAnswer(
                top=self._candidates(ids[0], values[0]),
                rest=groups(logprobs.sort(descending=True).values[NUM_CANDIDATES:]),
                number=uniform(seed, position),
            )

        return self._question(reading, position - 1, answer)

    def attention(self, position: int, layer: int) -> Question:
        """What the token at `position` looked at in a layer. Raises InvalidRequest."""
        if not 0 <= layer < self._num_layers:
            raise InvalidRequest("layer", f"must be among 0..{self._num_layers - 1}")
        name = point(layer, "attn.hook_pattern")
        reading = self._reading([name], position)

        def answer() -> AttentionAnswer:
            paid = reading.values(name)[0, :, : position + 1]  # what is behind it was not looked at
            heads = (paid * PARTS).round().int().tolist()
            return AttentionAnswer(num_layers=self._num_layers, heads=heads)

        return self._question(reading, position, answer)

    def guesses(self, position: int) -> Question:
        """What each layer would say after `position`. Raises InvalidRequest."""
        names = [point(layer, "hook_resid_post") for layer in range(self._num_layers)]
        reading = self._reading(names, position, of=self._likeliest)

        def answer() -> LensAnswer:
            layers = []
            for layer, name in enumerate(names):
                seen = reading.values(name)[0]
                top = self._candidates(seen[:NUM_GUESSES].long(), seen[NUM_GUESSES:])
                layers.append(LayerGuess(layer=layer, top=top))
            return LensAnswer(layers=layers)

        return self._question(reading, position, answer)

    def _reading(
        self, names: list[str], position: int, of: Callable[[Tensor], Tensor] = lambda each: each
    ) -> Reading:
        return Reading(names, [position], of=of)

    def _question(self, reading: Reading, position: int, answer: Callable[[], Answer]) -> Question:
        return Question(question(self._whole, [position]), reading, position, answer)

    def _likeliest(self, residual: Tensor) -> Tensor:
        """(n, 2 * NUM_GUESSES) float64: ids, then their log probabilities."""
        logprobs = torch.log_softmax(self._logits(residual), dim=-1)
        values, ids = rank(logprobs, NUM_GUESSES)
        return torch.cat([ids.double(), values.double()], dim=-1)

    def _candidates(self, ids: Tensor, logprobs: Tensor) -> list[Candidate]:
        pairs = zip(ids.tolist(), logprobs.tolist(), strict=True)
        return [(id, self._tokenizer.token_text(id), round(logprob, 6)) for id, logprob in pairs]


def groups(logprobs: Tensor) -> list[tuple[int, float]]:
    """Log probabilities `(n,)`, best first, in groups that grow: how many, and the mean of them.

    The mean is that of the probabilities, so their mass is exact at temperature 1.
    """
    edges = torch.logspace(0, 1, NUM_GROUPS + 1, base=len(logprobs) + 1).long() - 1
    sizes = [size for size in edges.diff().tolist() if size]
    parts = torch.split(logprobs.double(), sizes) if sizes else ()
    return [
        (len(part), round(float(part.logsumexp(-1)) - math.log(len(part)), 6)) for part in parts
    ]
