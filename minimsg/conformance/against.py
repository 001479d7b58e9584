"""Two servers asked the same: where they differ, whichever is right.

The first request of every case goes to both. Compared is what does not depend on chance:
status, type of error, kinds of blocks, keys of usage. Where both serve a model of one name
and take a temperature, each is asked for greedy words, and then text, stop_reason,
stop_sequence and the counts are compared, too; elsewhere these are the model's own, and a
difference would say nothing. Knows no rule: a difference is no verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Final

from minimsg.conformance.case import Case, Json
from minimsg.conformance.catalog import load_features
from minimsg.conformance.expression import show
from minimsg.conformance.feature import State
from minimsg.conformance.functions import kinds, total
from minimsg.conformance.reply import Reply
from minimsg.conformance.runner import Session
from minimsg.conformance.settings import Settings

GREEDY: Final[Json] = {"temperature": 0}
TEMPERATURE_VERSION: Final = "2023-06-01"  # the later one has no temperature


@dataclass(frozen=True)
class Difference:
    """One thing that the two answered differently."""

    case_id: str
    what: str
    left: str
    right: str

    @property
    def line(self) -> str:
        return f"{self.case_id}: {self.what}: {self.left} and {self.right}"


async def differences(
    cases: Sequence[Case], settings: Settings, other_url: str
) -> AsyncIterator[Difference]:
    """Ask both servers, case by case. Raises what `Session.open` raises."""
    left = await Session.open(settings, ())
    right = await Session.open(replace(settings, url=other_url, model=None), ())
    may_be_greedy = left.player.model == right.player.model and await _take_temperature(left, right)
    for case in cases:
        is_greedy = may_be_greedy and can_be_greedy(case, settings)
        asked = (case, token_hex(4), GREEDY if is_greedy else {})
        one, other = await asyncio.gather(left.player.first(*asked), right.player.first(*asked))
        theirs = _facts(other, is_greedy)
        for what, seen in _facts(one, is_greedy).items():
            if seen != theirs[what]:
                yield Difference(case.id, what, show(seen), show(theirs[what]))


async def _take_temperature(*sessions: Session) -> bool:
    (feature,) = (each for each in load_features() if each.name == "temperature")
    states = [await session.player.probe(feature) for session in sessions]
    return all(state == State.OK for state in states)


def can_be_greedy(case: Case, settings: Settings) -> bool:
    """Whether a temperature of 0 changes the words of the first request, and nothing else."""
    step = case.steps[0]
    is_made_here = step.text is None and not step.raw and not step.bare
    has_none = not {"temperature", "top_p", "top_k", "thinking"} & step.send.keys()
    is_asked_greedily = step.send.get("temperature") == 0
    in_time = (case.version or settings.version) == TEMPERATURE_VERSION
    is_message = step.method == "POST" and step.path.partition("?")[0] == "/v1/messages"
    return is_made_here and in_time and is_message and (has_none or is_asked_greedily)


def _facts(reply: Reply, is_greedy: bool) -> dict[str, object]:
    """What may be compared of an answer."""
    body = reply.body if isinstance(reply.body, dict) else {}
    error = reply.error if isinstance(reply.error, dict) else {}
    content, usage = body.get("content"), body.get("usage")
    facts: dict[str, object] = {
        "status": reply.status,
        "type of error": error.get("type"),
        "kinds of blocks": kinds(content) if isinstance(content, list) else None,
        "keys of usage": sorted(usage) if isinstance(usage, dict) else None,
    }
    return facts | _words(reply, body) if is_greedy else facts


def _words(reply: Reply, body: Json) -> dict[str, object]:
    """What the model made of it."""
    usage = body.get("usage")
    return {
        "prompt tokens": total(usage) if isinstance(usage, dict) else None,
        "output tokens": usage.get("output_tokens") if isinstance(usage, dict) else None,
        "text": reply.text,
        "stop_reason": body.get("stop_reason"),
        "stop_sequence": body.get("stop_sequence"),
    }
