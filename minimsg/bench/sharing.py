"""What the prefix cache is worth: prompts that begin alike, read with it and without it.

The rounds are in `rounds.py`; both sides are our engine (`sides.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from minimsg.bench.rounds import Prompt, Round, Rounds
from minimsg.bench.settings import NO_PREFIX_CACHE, Shapes
from minimsg.bench.sides import Ours


def measure_sharing(
    ours: Ours,
    theirs: Ours,
    shapes: Shapes,
    prompts: Callable[[int, int], list[Prompt]],
    rounds: Rounds,
) -> dict[str, list[Round]]:
    """One prompt after the other, then many clients at once; a side's first round fills its cache.

    A warm prompt has `shared` tokens that were read before; clients share `system` tokens.
    """
    warm, clients = shapes.names(NO_PREFIX_CACHE)
    number = rounds.number + 1
    (long,), (system,) = prompts(1, shapes.shared), prompts(1, shapes.system)
    alone = [long + tail for tail in prompts(number, shapes.tail)]
    tails = prompts(number * shapes.clients, shapes.tail)
    together = [
        [system + tail for tail in tails[start : start + shapes.clients]]
        for start in range(0, len(tails), shapes.clients)
    ]
    sides = [side.prefilling(alone) for side in (ours, theirs)]
    figures = {warm: rounds.run(warm, *sides)}
    sides = [side.serving(together, shapes.new_tokens) for side in (ours, theirs)]
    return figures | {clients: rounds.run(clients, *sides)}
