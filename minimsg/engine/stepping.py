"""An engine's steps, one at a time: what ran, what came of it, and back again.

    steps = engine.steps(request, keep=8)
    step = next(steps)          # the engine rests until the next is asked for
    steps.rewind(1)             # as if it had not been taken; the same comes again

Steps and what they hold show themselves in a notebook (`minimsg/show/`). The rows of
`step.logits` are those of `step.batch.sample_rows`: what the sampler chose from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from minimsg.engine.page_map import PageMap
from minimsg.engine.types import Batch, Finish, GenerationRequest, Output
from minimsg.engine.undo import History
from minimsg.engine.watching import Functions
from minimsg.errors import ConfigError

if TYPE_CHECKING:
    from minimsg.engine.engine import Engine


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One turn of the engine as a notebook sees it."""

    number: int  # of these steps, from 1 on
    batch: Batch
    outputs: list[Output]
    logits: Tensor | None  # (S, V) float32; None if its parts were computed one by one
    pages: PageMap  # after it

    def _repr_html_(self) -> str:
        from minimsg.show.steps import show_step

        return show_step(self)


class Steps(Iterator[Step]):
    """Runs requests to their end as it is iterated; whoever drops it cancels them."""

    def __init__(
        self,
        engine: Engine,
        requests: tuple[GenerationRequest, ...],
        hooks: Mapping[str, Functions] | None = None,
        keep: int = 0,
    ) -> None:
        """`hooks` by request id; the last `keep` steps can be taken back."""
        self._engine = engine
        self._coming = list(requests)
        self._hooks = hooks or {}
        self._unfinished: set[str] = set()
        self._number = 0
        self._pasts: deque[set[str]] = deque(maxlen=keep)  # who was unfinished before each step
        self._history = History(engine, keep) if keep else None

    def __len__(self) -> int:
        """How many steps can be taken back."""
        return len(self._pasts)

    def add(self, request: GenerationRequest, hooks: Functions | None = None) -> None:
        """One more request, from the next step on. Raises `InvalidRequest`."""
        self._engine.add(request, hooks)
        self._unfinished.add(request.id)

    def __next__(self) -> Step:
        """Take a step. Raises `InvalidRequest` before the first if a request cannot be run."""
        try:
            self._add_all()
        except BaseException:
            self.close()
            raise
        if not self._unfinished:
            if self._history is None:
                self.close()
            raise StopIteration
        if self._history is not None:
            self._history.mark()
            self._pasts.append(set(self._unfinished))
        outputs = self._engine.step()
        self._unfinished -= {each.request_id for each in outputs if isinstance(each, Finish)}
        self._number += 1
        return self._engine.shown(self._number, outputs)

    def rewind(self, num_steps: int = 1) -> None:
        """Take back the last steps: what they said is not said, what came since has not come.

        The same steps come to the same bits again. Raises ConfigError where so many are not
        kept.
        """
        if self._history is None:
            raise ConfigError("no steps are kept: ask for them with steps(..., keep=8)")
        self._history.rewind(num_steps)
        for _ in range(num_steps):
            self._unfinished = self._pasts.pop()
            self._number -= 1

    def close(self) -> None:
        """Cancel what is not finished, and keep no steps any more."""
        for request_id in self._unfinished:
            self._engine.cancel(request_id)
        self._unfinished = set()
        if self._history is not None:
            self._history.close()
            self._history = None

    def __del__(self) -> None:
        if hasattr(self, "_history"):  # else it was refused
            self.close()

    def _add_all(self) -> None:
        while self._coming:
            request = self._coming.pop(0)
            self.add(request, self._hooks.get(request.id))
