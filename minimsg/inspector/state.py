"""What an engine is doing, as one viewer may see it: the JSON behind the pane of the engine.

A viewer sees ids, pages and rows of its own tenant's requests; of all others only how many
there are. Bounded whatever runs. Knows snapshots, not who asks or how it is sent: that is
`server/inspect.py`; `show.py` does the same in a notebook.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, Literal, TypedDict

from minimsg.engine.snapshot import PageState, SeenSequence, SeenStep, Snapshot
from minimsg.engine.types import Checks
from minimsg.trace import finite

MAX_LISTED: Final = 64  # requests of the viewer, in the list and in each step
# What a page can be, besides a request's: the first words of `holders`, by place.
HOLDERS: Final = ("free", "cached", "kept", "others", "shared")
OTHERS, SHARED = HOLDERS.index("others"), HOLDERS.index("shared")


class SequenceState(TypedDict):
    """A request of the viewer; numbers are of tokens."""

    id: str
    state: Literal["running", "waiting"]
    num_prompt: int
    num_ids: int
    num_computed: int
    num_pages: int


class RowState(TypedDict):
    """What a step computed of a request of the viewer."""

    id: str
    start: int
    stop: int
    samples: bool


class StepState(TypedDict):
    """A step that is over; `num_...` are of the whole batch."""

    number: int
    took_s: float
    num_sequences: int
    num_tokens: int
    rows: list[RowState]


class OtherState(TypedDict):
    """The requests of other tenants, and of the viewer those that are not listed."""

    running: int
    waiting: int


class CheckState(TypedDict):
    """Steps that the reference kernel computed too: of each layer the largest error."""

    num_steps: int
    latest: list[float | None]
    worst: list[float | None]


class EngineState(TypedDict):
    """All of it. `pages[i]` says who holds page i: a place in `holders`."""

    type: Literal["engine"]
    num_steps: int
    num_pages: int
    page_size: int
    holders: list[str]
    pages: list[int]
    sequences: list[SequenceState]
    others: OtherState
    steps: list[StepState]
    checks: CheckState | None


def engine_state(
    snapshot: Snapshot, steps: Iterable[SeenStep], viewer: str | None = None
) -> EngineState:
    """`snapshot` and the latest `steps` for the tenant `viewer`; None may see everything."""
    own = [each for each in snapshot.sequences if viewer in (None, each.tenant)][:MAX_LISTED]
    tables = snapshot.pages.tables
    listed = {each.request_id for each in own}
    hidden = [each for each in snapshot.sequences if each.request_id not in listed]
    num_running = sum(each.is_running for each in hidden)
    return EngineState(
        type="engine",
        num_steps=snapshot.num_steps,
        num_pages=snapshot.pages.num_pages,
        page_size=snapshot.pages.page_size,
        holders=[*HOLDERS, *(each.request_id for each in own)],
        pages=_pages(snapshot, [tables[each.request_id] for each in own]),
        sequences=[_sequence(each, tables[each.request_id]) for each in own],
        others=OtherState(running=num_running, waiting=len(hidden) - num_running),
        steps=[_step(each, viewer) for each in steps],
        checks=None if snapshot.checks is None else _checks(snapshot.checks),
    )


def _pages(snapshot: Snapshot, own: Sequence[Sequence[int]]) -> list[int]:
    users = Counter(chain.from_iterable(own))
    holder = {
        page: SHARED if users[page] > 1 else len(HOLDERS) + place
        for place, pages in enumerate(own)
        for page in pages
    }
    return [
        holder.get(page, OTHERS) if state is PageState.USED else int(state)
        for page, state in enumerate(snapshot.states())
    ]


def _sequence(seen: SeenSequence, pages: Sequence[int]) -> SequenceState:
    return SequenceState(
        id=seen.request_id,
        state="running" if seen.is_running else "waiting",
        num_prompt=seen.num_prompt,
        num_ids=seen.num_ids,
        num_computed=seen.num_computed,
        num_pages=len(pages),
    )


def _step(seen: SeenStep, viewer: str | None) -> StepState:
    own = [row for row in seen.rows if viewer in (None, row.tenant)][:MAX_LISTED]
    return StepState(
        number=seen.number,
        took_s=round(seen.took_s, 6),
        num_sequences=len(seen.rows),
        num_tokens=seen.num_tokens,
        rows=[
            RowState(id=row.request_id, start=row.start, stop=row.stop, samples=row.samples)
            for row in own
        ],
    )


def _checks(checks: Checks) -> CheckState:
    return CheckState(
        num_steps=checks.num_steps, latest=finite(checks.latest), worst=finite(checks.worst)
    )
