"""What a failure is explained with, beside expected and seen: the bytes, the command to repeat.

Bytes become text line by line, as they went by; what cannot be read stays visible as an
escape, and a key is never shown. Knows the parts of an explanation, not how they are laid
out: that is each report's.
"""

from __future__ import annotations

import shlex

from minimsg.conformance.verdict import SHOWN_BYTES, Line, Result, Run
from minimsg.conformance.wire import Exchange


def wire(exchange: Exchange, key: str | None) -> list[Line]:
    """Both directions in the order of time, cut where they grow long."""
    lines, left = [], {True: SHOWN_BYTES, False: SHOWN_BYTES}
    for piece in exchange.pieces:
        room = left[piece.is_sent]
        if room <= 0:
            continue
        left[piece.is_sent] -= len(piece.data)
        text = piece.data[:room].decode(errors="backslashreplace")
        if len(piece.data) > room:
            text += f"... ({len(piece.data) - room} more bytes)"
        text = text.replace(key, "$KEY") if key else text
        lines.append(Line(round(piece.at_s, 4), piece.is_sent, text))
    return lines


def repeat_command(run: Run, result: Result) -> str:
    """The command that runs one case again as it was run."""
    words = ["minimsg", "conform", run.url, "--case", result.id, "--model", run.model]
    words += ["--profile", run.profile, "--api-version", run.version, "--seed", str(run.seed)]
    return " ".join(map(shlex.quote, words)) + (' --key "$KEY"' if run.has_key else "")
