"""Steps as tables.

Knows the engine's types by what they hold; a tokenizer, if there is one, comes as a function
from an id to its text. What needs no tensor is in `batches.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from minimsg.engine.types import Admitted, Finish, Output, Token
from minimsg.show.batches import MAX_ROWS, short_table, show_batch, show_pages

if TYPE_CHECKING:
    from torch import Tensor

    from minimsg.engine.stepping import Step

TextOf = Callable[[int], str]

NUM_CANDIDATES: Final = 5  # ids shown of each row of logits


def show_step(step: Step, text_of: TextOf | None = None) -> str:
    """A step: what it ran, what it said, what it chose from, whose the pages are then."""
    parts = [show_batch(step.batch), show_outputs(step.outputs, text_of)]
    if step.logits is not None and len(step.logits):
        parts.append(show_logits(step.logits, step.batch.sample_ids, text_of))
    parts.append(show_pages(step.pages))
    return f"<div><p><strong>Step {step.number}</strong></p>\n" + "\n".join(parts) + "</div>"


def show_outputs(outputs: Iterable[Output], text_of: TextOf | None = None) -> str:
    """What a step said, a row each."""
    rows = [
        (output.request_id, *_said(output, text_of))
        for output in outputs
        if isinstance(output, Admitted | Token | Finish)
    ]
    return short_table("Said", ("request", "what", "value", "log probability"), rows)


def show_logits(logits: Tensor, sample_ids: list[str], text_of: TextOf | None = None) -> str:
    """The likeliest ids of each row of logits `(S, V)`, before temperature and constraints."""
    probabilities = logits[:MAX_ROWS].softmax(dim=-1)
    top = probabilities.topk(min(NUM_CANDIDATES, probabilities.shape[-1]), dim=-1)
    rows = []
    for place, (ids, shares) in enumerate(zip(top.indices, top.values, strict=True)):
        pairs = zip(ids.tolist(), shares.tolist(), strict=True)
        candidates = (f"{_named(id, text_of)} {share:.1%}" for id, share in pairs)
        rows.append((sample_ids[place], *candidates))
    ranks = [f"{place + 1}." for place in range(top.indices.shape[-1])]
    return short_table("Likeliest next ids", ("request", *ranks), rows, len(logits))


def _said(output: Admitted | Token | Finish, text_of: TextOf | None) -> tuple[str, str, str]:
    if isinstance(output, Token):
        return "token", _named(output.id, text_of), f"{output.logprob:.3f}"
    if isinstance(output, Finish):
        return "finish", output.error or output.reason, ""
    return "admitted", f"{output.counts.reused} tokens from the cache", ""


def _named(id: int, text_of: TextOf | None) -> str:
    return str(id) if text_of is None else f"{id} {text_of(id)!r}"
