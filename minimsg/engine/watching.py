"""Activations of a running batch, read and changed by name: for one request, while others run.

    def steer(values, place):          # (n, hidden), of the n tokens at `place.positions`
        return values + direction      # a tensor takes their place; None leaves them

    engine.generate(ids, max_tokens=20, hooks={"blocks.5.hook_resid_post": steer})

What a function sees: its own copy of its request's rows in this step, at each point that it
has a name of (`models/points.py`; `*` stands for anything). Every position from `first` on is
computed for it and shown once, in order, however the prompt is cut into steps; drafts never
are. A request that is preempted, or whose step failed, begins again: then positions that
were shown before are shown again. Its neighbours compute as if it were not there, and no
page of keys and values that follows from a changed row is found by anybody else. What a
function raises ends its own request. With nobody looking, a step costs one test more.

Knows requests by their ids, and rows of batches; the layers come here by `models/watched.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from minimsg.engine.types import Batch, Sequence, Watched
from minimsg.errors import GenerationFailed
from minimsg.kernels import reference
from minimsg.models import points
from minimsg.models.contract import Attended, WatchedModel


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values that a function sees are from."""

    request_id: str
    point: str
    positions: range  # of the n rows, in the sequence

    @property
    def layer(self) -> int | None:
        """The layer of the point, if it is in one."""
        return points.layer_of(self.point)


Function = Callable[[Tensor, Place], Tensor | None]
Functions = Mapping[str, Function]  # by point


class Hooks:
    """The functions of all requests that have any."""

    def __init__(self, model: object) -> None:
        self.points = model.points if isinstance(model, WatchedModel) else ()
        self._coming: dict[str, Watched] = {}  # of requests that are not added yet
        self._open: dict[str, Watched] = {}

    def add(self, request_id: str, functions: Functions, *, first: int = 0) -> None:
        """Look at a request that is about to be added, until it ends.

        `first`: the first position whose rows are wanted; what lies before it may come from
        the prefix cache. Raises InvalidRequest for a name that is no point's.
        """
        names = points.matching(functions, self.points)
        self._coming[request_id] = Watched({name: functions[names[name]] for name in names}, first)

    def take(self, request_id: str) -> Watched | None:
        """What looks at a request, as it is being added."""
        return self._coming.pop(request_id, None)

    def open(self, request_id: str, watched: Watched | None) -> None:
        """The request is added: its rows come from now on."""
        if watched is not None:
            self._open[request_id] = watched
        elif self._open:
            self._open.pop(request_id, None)

    def reopen(self, sequences: Iterable[Sequence]) -> None:
        """These are the sequences that there are now, and who looks at them."""
        self._open = {
            each.request.id: each.watched for each in sequences if each.watched is not None
        }

    def clear(self) -> None:
        """Forget everything."""
        self._coming, self._open = {}, {}

    def watch(self, batch: Batch) -> StepWatch | None:
        """Who looks at a batch, or None."""
        if not self._open:
            return None
        for request_id, watched in tuple(self._open.items()):
            if watched.is_over:
                self._open.pop(request_id, None)
        views = [
            view for index in range(len(batch.request_ids)) if (view := self._view(batch, index))
        ]
        return StepWatch(views) if views else None

    def _view(self, batch: Batch, index: int) -> View | None:
        """The rows of a sequence that are looked at, if any are."""
        request_id = batch.request_ids[index]
        watched = self._open.get(request_id)
        if watched is None or watched.error is not None:
            return None
        start, stop = batch.query_starts[index : index + 2]
        end = batch.context_lens[index]
        count = min(stop - start, end - watched.first)
        if count < 1:
            return None
        return View(request_id, watched, index, slice(stop - count, stop), range(end - count, end))


@dataclass(frozen=True, slots=True)
class View:
    """The rows of a batch that the functions of one request see."""

    request_id: str
    watched: Watched
    index: int  # of its sequence in the batch
    rows: slice
    positions: range

    def call(self, point: str, values: Tensor) -> Tensor | None:
        """What the request's function makes of its values `(n, ...)`; None if it leaves them.

        A failure is noted, and the function not called again.
        """
        watched = self.watched
        function = watched.functions.get(point)
        if function is None or watched.error is not None:
            return None
        try:
            with torch.inference_mode(False), torch.no_grad():
                shown = values.clone()
                changed = function(shown, Place(self.request_id, point, self.positions))
                return None if changed is None else _checked(changed, values, point)
        except Exception as error:  # a function's failure ends its own request
            watched.error = f"{point}: {type(error).__name__}: {error}"
            return None


class StepWatch:
    """The functions that look at one step, as the model sees them (`Watch`)."""

    def __init__(self, views: list[View]) -> None:
        self._views = views
        self._wanted = {point for view in views for point in view.watched.functions}

    def wants(self, point: str) -> bool:
        return point in self._wanted

    def visit(self, point: str, values: Tensor) -> list[slice]:
        changed: list[slice] = []
        for view in self._views if point in self._wanted else ():
            new = view.call(point, values[view.rows])
            if new is not None:
                values[view.rows] = new
                view.watched.is_patched = True
                changed.append(view.rows)
        return changed

    def attended(self, attended: Attended) -> None:
        point = points.point(attended.layer, "attn.hook_pattern")
        for view in self._views if point in self._wanted else ():
            if point in view.watched.functions:
                view.call(point, _pattern(attended, view))


def _pattern(attended: Attended, view: View) -> Tensor:
    """(n, Hq, keys) what each row of a view pays to each token up to the last row."""
    layout = attended.layout
    return reference.pattern(
        attended.query[view.rows],
        attended.pages,
        layout.page_tables[view.index],
        layout.context_lens[view.index],
        scale=attended.scale,
        window=attended.window,
    )


def _checked(changed: object, values: Tensor, point: str) -> Tensor:
    """What a function has returned, as values of its point. Raises GenerationFailed."""
    if points.is_read_only(point):
        raise GenerationFailed("it can be read, not changed: return None")
    if not isinstance(changed, Tensor) or changed.shape != values.shape:
        seen = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
        raise GenerationFailed(f"a tensor {tuple(values.shape)} is wanted, not {seen}")
    return changed.detach().to(values)
