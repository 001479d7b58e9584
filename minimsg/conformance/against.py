"""Two servers asked the same: where they differ, whichever is right.

The first request of every case goes to both. Compared is what does not depend on chance:
status, type of error, kinds of blocks, keys of usage; and, where both serve a model of one
name, greedy text and the count of its prompt. Knows no rule: a difference is no verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from minimsg.conformance.case import Case
from minimsg.conformance.expression import show
from minimsg.conformance.functions import kinds, total
from minimsg.conformance.reply import Reply
from minimsg.conformance.runner import Session
from minimsg.conformance.settings import Settings


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
    is_one_model = left.player.model == right.player.model
    for case in cases:
        one, other = await asyncio.gather(left.player.first(case), right.player.first(case))
        is_greedy = is_one_model and case.steps[0].send.get("temperature") == 0
        for what, seen in _facts(one, is_greedy).items():
            theirs = _facts(other, is_greedy)[what]
            if seen != theirs:
                yield Difference(case.id, what, show(seen), show(theirs))


def _facts(reply: Reply, is_greedy: bool) -> dict[str, object]:
    """What may be compared of an answer."""
    body = reply.body if isinstance(reply.body, dict) else {}
    error = reply.error if isinstance(reply.error, dict) else {}
    content, usage = body.get("content"), body.get("usage")
    return {
        "status": reply.status,
        "type of error": error.get("type"),
        "kinds of blocks": kinds(content) if isinstance(content, list) else None,
        "keys of usage": sorted(usage) if isinstance(usage, dict) else None,
        "prompt tokens": total(usage) if is_greedy and isinstance(usage, dict) else None,
        "text": reply.text if is_greedy else None,
    }
