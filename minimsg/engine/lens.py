"""What a prompt's activations say: values at points, the logit lens, attention patterns.

A prompt is computed like any other, up to the last position that is asked for, and the
functions of `watching.py` keep what they see: keys come from the real pages, filled by
whoever came first. A script calls `read`, `logit_lens` or `attention_pattern`. Where a
worker steps the engine, hand it a `question` and the hooks of a `Reading`:

    reading = Reading(["blocks.*.attn.hook_pattern"], positions)
    request = question(prompt_ids, positions)
    engine.hooks.add(request.id, reading.hooks, first=min(positions))
    ...                                # submit the request, wait for its end
    reading.values("blocks.0.attn.hook_pattern")

The lens reads the residual stream behind each layer as if it were the last
(nostalgebraist, "interpreting GPT: the logit lens", 2020).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Ids
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.engine.engine import GREEDY, Engine
from minimsg.engine.types import GenerationRequest
from minimsg.engine.watching import Functions, Place
from minimsg.errors import InvalidRequest
from minimsg.models.contract import WatchedModel
from minimsg.models.points import point

Prompt = Ids[int] | GenerationRequest


class Reading:
    """The values of some points, of all positions or of some. A request may begin again."""

    def __init__(
        self,
        names: Iterable[str],
        positions: Iterable[int] | None = None,
        of: Callable[[Tensor], Tensor] = lambda values: values,
    ) -> None:
        """`of` is what to keep of values `(n, ...)`; called where the model runs."""
        self.hooks: Functions = dict.fromkeys(names, self._keep)
        self._wanted = None if positions is None else set(positions)
        self._of = of
        self._rows: dict[str, dict[int, Tensor]] = {}  # by position

    @property
    def seen(self) -> list[str]:
        """The points that were come to, in their order."""
        return list(self._rows)

    def values(self, name: str) -> Tensor:
        """(n, ...) in order of position; patterns all as long as the last."""
        rows = [row for _, row in sorted(self._rows[name].items())]
        width = max(row.shape[-1] for row in rows)
        return torch.stack([F.pad(row, (0, width - row.shape[-1])) for row in rows])

    def _keep(self, values: Tensor, place: Place) -> None:
        wanted = [
            index
            for index, position in enumerate(place.positions)
            if self._wanted is None or position in self._wanted
        ]
        rows = self._rows.setdefault(place.point, {})
        for index, row in zip(wanted, self._of(values[wanted]), strict=True):
            rows[place.positions[index]] = row


def question(prompt: Prompt, positions: Iterable[int] | None = None) -> GenerationRequest:
    """A request that computes a prompt as far as the last of `positions`, and says nothing.

    Raises InvalidRequest for a position that is none of the prompt's.
    """
    if not isinstance(prompt, GenerationRequest):
        prompt = GenerationRequest("", prompt, 0)
    num_ids = len(prompt.prompt_ids)
    asked = range(num_ids) if positions is None else list(positions)
    if not asked or min(asked) < 0 or max(asked) >= num_ids:
        raise InvalidRequest("", f"positions must be among the prompt's, 0..{num_ids - 1}")
    stop = max(asked) + 1
    stop = max([stop, *(image.stop for image in prompt.images if image.start < stop)])
    return replace(
        prompt,
        id=secrets.token_hex(8),
        prompt_ids=prompt.prompt_ids[:stop],
        max_tokens=0,
        sampling=GREEDY,
        hook=None,
        marks=(),
        passages=(),
        images=tuple(image for image in prompt.images if image.stop <= stop),
    )


def read(
    engine: Engine, prompt: Prompt, names: Ids[str], positions: Ids[int] | None = None
) -> dict[str, Tensor]:
    """The values `(n, ...)` of each point that `names` mean, at `positions` or all.

    Steps the engine. Raises `InvalidRequest`, and `GenerationFailed` with the cause.
    """
    reading = Reading(names, positions)
    _ask(engine, prompt, reading, positions)
    return {name: reading.values(name) for name in reading.seen}


def logit_lens(
    engine: Engine,
    prompt: Prompt,
    *,
    layers: Ids[int] | None = None,
    positions: Ids[int] | None = None,
) -> Tensor:
    """(layers, n, V) float32: the logits that the stream behind each layer would give."""
    model = _watched(engine)
    names = [point(layer, "hook_resid_post") for layer in _layers(engine, layers)]
    reading = Reading(names, positions, of=model.logits)
    _ask(engine, prompt, reading, positions)
    return torch.stack([reading.values(name) for name in names])


def attention_pattern(
    engine: Engine,
    prompt: Prompt,
    *,
    layers: Ids[int] | None = None,
    positions: Ids[int] | None = None,
) -> Tensor:
    """(layers, Hq, n, keys) float32: what the tokens at `positions` pay to those before them."""
    names = [point(layer, "attn.hook_pattern") for layer in _layers(engine, layers)]
    reading = Reading(names, positions)
    _ask(engine, prompt, reading, positions)
    return torch.stack([reading.values(name).transpose(0, 1) for name in names])


def _ask(engine: Engine, prompt: Prompt, reading: Reading, positions: Ids[int] | None) -> None:
    request = question(prompt, positions)
    engine.hooks.add(request.id, reading.hooks, first=min(positions or [0]))
    engine.run(request)


def _layers(engine: Engine, layers: Ids[int] | None) -> Ids[int]:
    return range(len(engine.runner.model.cache_specs)) if layers is None else layers


def _watched(engine: Engine) -> WatchedModel:
    """The engine's model. Raises InvalidRequest if it has no points."""
    model = engine.runner.model
    if not isinstance(model, WatchedModel):
        raise InvalidRequest("", "the model has no points that can be looked at")
    return model
