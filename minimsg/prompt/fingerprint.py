"""What tells whether a prompt goes on from an earlier one, and if not, which part has changed.

Digests of the parts in the form that does not see what clients move about: cache marks,
strings or blocks, ids of calls, thinking (`replay.py`). Tools are those that the model
is told of. Knows requests and what was rendered of them; next: `server/past_prompts.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from minimsg.prompt.conversation import after_compaction, standing
from minimsg.prompt.reading import Reading, system_turn
from minimsg.prompt.replay import digest_of, form_of
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import Turn, turns_of


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Digests of a prompt's parts."""

    tools: str
    system: str
    messages: list[str]  # of all up to each block
    end: str  # of all up to where the reply begins: a prompt that goes on has it in `messages`


def fingerprint_of(request: PromptRequest, reading: Reading, dialect: Dialect) -> Fingerprint:
    """The fingerprint of `request`, which was rendered to `reading`."""
    tools = [function.template_form() for function in reading.given.functions]
    turns = after_compaction(turns_of(standing(request.messages)))
    answered = turns[:-1] if turns and turns[-1].role == "assistant" else turns
    return Fingerprint(
        tools=sha256(json.dumps(tools, sort_keys=True).encode()).hexdigest(),
        system="".join(_digests(system_turn(request, dialect))[-1:]),
        messages=_digests(turns),
        end="".join(_digests(answered)[-1:]),
    )


def _digests(turns: Sequence[Turn]) -> list[str]:
    """Of the conversation up to each block that a digest sees."""
    digests: list[str] = []
    before = ""
    for turn in turns:
        for placed in turn.blocks:
            if (form := form_of(placed.block)) is not None:
                before = digest_of(before, turn.role, [form])
                digests.append(before)
    return digests
