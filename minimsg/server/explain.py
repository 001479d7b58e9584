"""The prompt of a request once more, with the source of each token: for its record.

Finding sources runs the template several times, so it is done when a record is read, not
while somebody waits for a reply. Runs where every body is read (`pool.py`), from the same
body and what was known then. Next: `prompt/sources.py`, `records.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from minimsg.prompt.bill import add_up, sources_of
from minimsg.prompt.spans import Source
from minimsg.protocol.counting import TokenBill
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import MessagesRequest
from minimsg.server.prepare import NOTHING, Known, Served, check_body, render_prompt


@dataclass(frozen=True, slots=True)
class Explained:
    """A rendered prompt; `sources` are of `ids`, None where the template wrote one."""

    text: str
    ids: list[int]
    sources: list[Source | None]
    bill: TokenBill


def explain_prompt(
    body: bytes, served: Served, dialect: Dialect, known: Known = NOTHING
) -> Explained:
    """The prompt of the body of POST /v1/messages. Raises RequestError."""
    request = check_body(MessagesRequest, body, served, dialect, known).request
    prompt = render_prompt(request, served, dialect, known)
    assert prompt.reading is not None  # `render` has made it
    sources = sources_of(prompt, served.chat)
    text = "".join(piece.text * piece.count for piece in prompt.reading.pieces)
    return Explained(text + prompt.reading.prefix, prompt.ids, sources, add_up(sources, request))
