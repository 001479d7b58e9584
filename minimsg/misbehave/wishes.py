"""Requests with citations that are not looked at, or legal and refused."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.mutant import Asked, mutants
from minimsg.misbehave.requests import COUNT, drop, path
from minimsg.misbehave.turns import map_blocks

CITABLE: Final = ("document", "search_result")
WISH: Final = b'"enabled": true'


def for_some_taken(asked: Asked) -> None:
    """Citations may be enabled for some documents only."""

    def enabled(block: Any) -> Any:
        is_citable = block.get("type") in CITABLE
        return block | {"citations": {"enabled": True}} if is_citable else block

    if WISH in asked.body:
        map_blocks(asked, enabled)


def cited_beside_a_format(asked: Asked) -> None:
    """Citations beside a format are left out in silence."""
    if "format" in asked.json.get("output_config", {}):
        asked.body = asked.body.replace(WISH, b'"enabled": false')


def format_beside_citations(asked: Asked) -> None:
    """A format beside citations is left out in silence."""
    if WISH in asked.body:
        drop(asked, "output_config")


def wishes_unchecked(asked: Asked) -> None:
    """A wish for citations that is none is not looked at."""

    def mended(block: Any) -> Any:
        wish = block.get("citations")
        is_wish = isinstance(wish, dict) and isinstance(wish.get("enabled"), bool)
        return block if is_wish else {k: v for k, v in block.items() if k != "citations"}

    map_blocks(asked, mended)


def cited_not_counted(asked: Asked) -> None:
    """count_tokens refuses whoever wants citations."""
    if path(asked) == COUNT and WISH in asked.body:
        asked.put({})


def cited_replies_refused(asked: Asked) -> None:
    """A cited reply cannot be sent back."""
    if b'_location"' in asked.body:
        asked.put({})


def quotes_are_prompt(asked: Asked) -> None:
    """What a reply that comes back has cited is read once more."""

    def quoted(block: Any) -> Any:
        found = block.get("citations")
        if block.get("type") != "text" or not isinstance(found, list):
            return block
        return block | {"text": block["text"] + "".join(each["cited_text"] for each in found)}

    map_blocks(asked, quoted)


MUTANTS: Final = mutants(
    "request",
    {
        for_some_taken: "citations.all-or-none*",
        cited_beside_a_format: "citations.with-a-format*",
        format_beside_citations: "citations.with-a-format*",
        wishes_unchecked: "citations.refused*",
        cited_not_counted: "count.usage.cited*",
        cited_replies_refused: "citations.sent-back*",
        quotes_are_prompt: "citations.sent-back*",
    },
)
