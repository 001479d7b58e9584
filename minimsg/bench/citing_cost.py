"""What `--citations attention` costs: the time that a token of a reply takes, beside `off`.

Two servers without HTTP have the same model. In each round both answer one question, one after
the other, and who is first changes; each has read the prompt before, so that what is timed is
decoding. The ratio is made inside each round.

The questions are those of `citations.py`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from statistics import median
from time import perf_counter
from typing import Final

from minimsg.bench.citations import Case, asked, cases, reply
from minimsg.bench.settings import VersusSettings
from minimsg.offline.answering import Answerer

OFF, ATTENTION = "off", "attention"
SIDES: Final = (OFF, ATTENTION)


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a token, round by round."""

    off_ms: list[float]
    attention_ms: list[float]

    @property
    def ratios(self) -> list[float]:
        """How many times as long a token takes with attention."""
        return [with_it / off for off, with_it in zip(self.off_ms, self.attention_ms, strict=True)]

    def words(self) -> str:
        """In one line."""
        ratios = self.ratios
        return (
            f"a token takes {median(self.attention_ms):.1f} ms with attention and "
            f"{median(self.off_ms):.1f} ms without: {median(ratios):.2f} times as long "
            f"({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} rounds)"
        )

    def as_dict(self) -> dict[str, object]:
        """For reports."""
        return asdict(self) | {"ratio": median(self.ratios)}


def measure_cost(model: str, settings: VersusSettings) -> Cost:
    """The cost, over as many questions as there are rounds."""
    return asyncio.run(_cost(model, settings))


async def _cost(model: str, settings: VersusSettings) -> Cost:
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    async with AsyncExitStack() as stack:
        answerers = {}
        for side in SIDES:
            wanted = asked(model, side, settings)
            wanted = replace(wanted, engine=replace(wanted.engine, no_prefix_cache=False))
            answerers[side] = await stack.enter_async_context(Answerer.open(wanted))
        for number in range(settings.num_rounds):
            case = cases()[number % len(cases())]
            for side in SIDES if number % 2 else SIDES[::-1]:
                await reply(answerers[side], case, model)  # its prompt is in the cache from now on
                times[side].append(await _token_ms(answerers[side], case, model))
    return Cost(times[OFF], times[ATTENTION])


async def _token_ms(answerer: Answerer, case: Case, model: str) -> float:
    started = perf_counter()
    message = await reply(answerer, case, model)
    num_tokens: int = message["usage"]["output_tokens"]
    return 1_000 * (perf_counter() - started) / num_tokens
