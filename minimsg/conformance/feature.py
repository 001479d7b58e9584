"""What a server can do, found out by asking it: features, and the four ways to have one.

A feature is one request of `cases/features.toml`. Cases that need a feature which is refused
cleanly are skipped; where it is wrong they run, and say so. Knows what an answer means for
a feature; `player.py` asks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from minimsg.conformance.asserts import statuses
from minimsg.conformance.case import NAME_PATTERN, Case, Expression, Step, Table, Text
from minimsg.conformance.expression import holds
from minimsg.conformance.reply import Reply
from minimsg.conformance.settings import Version

REFUSALS: Final = frozenset({*range(400, 429), *range(430, 500), 501})


class State(StrEnum):
    """How a server took the request."""

    OK = "ok"
    REFUSED = "refused cleanly"  # 4xx or 501
    IGNORED = "silently ignored"  # 200, and nothing came of it
    WRONG = "wrong"  # 5xx, no answer, or nonsense


class Feature(Table):
    """One thing that servers differ in. `works` holds where it had its effect."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    title: Text
    version: Version | None = None
    step: Step = Step()
    works: tuple[Expression, ...] = ()
    optional: bool = False  # ignoring it in silence is legal: cases are then skipped, too
    refused_by: frozenset[int] = REFUSALS  # what says that it is not there


def state_of(feature: Feature, reply: Reply) -> State:
    """How a server has the feature, by its answer to the feature's request."""
    if reply.exchange.fault or (reply.status >= 500 and reply.status != 501):
        return State.WRONG
    if reply.status in statuses(feature.step.expect):
        if all(holds(expression, {feature.step.name: reply}) for expression in feature.works):
            return State.OK
        return State.IGNORED if isinstance(reply.body, dict) else State.WRONG
    if reply.status in feature.refused_by:
        return State.REFUSED
    return State.WRONG if reply.status in REFUSALS else State.IGNORED


def missing(case: Case, features: dict[str, Feature], states: dict[str, State]) -> str | None:
    """Why the server cannot be asked `case`: the first feature it refuses, or may ignore."""
    for name in case.needs:
        state = states.get(name, State.OK)
        if state == State.REFUSED or (state == State.IGNORED and features[name].optional):
            return f"{features[name].title}: {state}"
    return None
