"""How prompts share the tokens of a step that decoding leaves (chunked prefill).

Half go to the oldest prompt and the rest to the shortest of its priority, so that neither a
long prompt holds up short ones nor they it; background prompts get what these leave, and
beside interactive work only a few tokens: whoever waits for a step pays for all of it. A
prompt waits a step where one before it is about to compute the same page: it will find
that page then.
"""

from __future__ import annotations

from typing import Final

from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.types import Priority, Sequence

BESIDE_INTERACTIVE: Final = 4  # tokens of a background prompt in a step


def chunks(
    prompts: list[Sequence], budget: int, cache: PromptCache, *, is_interactive: bool = False
) -> list[tuple[Sequence, int]]:
    """How many of their next ids some prompts, in order of rank, compute; `budget` at most.

    `is_interactive`: somebody waits for what the step computes.
    """
    if not prompts:
        return []
    oldest, *others = prompts
    beside = BESIDE_INTERACTIVE if is_interactive else budget
    if oldest.request.priority is Priority.BACKGROUND:
        budget = min(budget, beside)
    share = min(oldest.num_pending, budget - budget // 2)
    left, claimed = budget - share, set(cache.next_pages(oldest, share))
    given = []
    for sequence in sorted(others, key=lambda each: (each.request.priority, each.num_pending)):
        if sequence.request.priority > oldest.request.priority:
            more = min(oldest.num_pending - share, left)
            share, left = share + more, min(left - more, beside)
        count = min(sequence.num_pending, left)
        pages = cache.next_pages(sequence, count)
        if count and not claimed.intersection(pages[:1]):
            given.append((sequence, count))
            claimed.update(pages)
            left -= count
    return [*given, (oldest, min(oldest.num_pending, share + left))]
