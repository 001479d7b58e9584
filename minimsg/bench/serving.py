"""Servers as sides of a comparison, under the load of `load.py`; and our engine beside one.

Decoding is timed on prompts that the server has read before, so that both sides have them
in their caches; a round's figure is what comes between the first token and the last. The
rounds are in `rounds.py`; servers are started in `servers.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from time import perf_counter
from typing import Final

from minimsg.bench.load import first_model, open_session, run_streams
from minimsg.bench.prompts import words, words_for
from minimsg.bench.rounds import Figures, Prompt
from minimsg.bench.sample import Sample
from minimsg.bench.sides import Ours
from minimsg.bench.target import Target
from minimsg.errors import ConfigError

REQUEST_S: Final = 600.0


class Served:
    """A server at a base URL. Satisfies `Side`; to be closed."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        """Each request has these `headers`. Raises ConfigError if it lists no model."""
        self._loop = asyncio.Runner()
        try:
            self._target = self._loop.run(_open(url, headers or {}))
        except BaseException:
            self._loop.close()
            raise

    def decoding(self, prompts: Sequence[str], new_tokens: int) -> Figures:
        self._ask(prompts, 1)
        while True:
            yield decode_rate(self._ask(prompts, new_tokens))

    def prefilling(self, prompts: Sequence[str]) -> Figures:
        for prompt in prompts:
            (sample,) = self._ask([prompt], 1)
            yield sample.input_tokens / sample.ttft_s

    def texts(self, number: int, tokens: int) -> list[str]:
        """Different prompts of about so many tokens, by this server's count."""
        count = self._loop.run(words_for(tokens, self._target.count_tokens))
        return [words(count, seed=tokens * 1000 + place) for place in range(number)]

    @property
    def url(self) -> str:
        """Where it is."""
        return self._target.url

    @property
    def model(self) -> str:
        """The one that is asked: the first in the server's list."""
        return self._target.model

    def close(self) -> None:
        self._loop.run(self._target.session.close())
        self._loop.close()

    def _ask(self, prompts: Sequence[str], max_tokens: int) -> list[Sample]:
        """All at once. Raises ConfigError unless every one is answered."""
        number, deadline = len(prompts), perf_counter() + REQUEST_S
        samples, errors = self._loop.run(
            run_streams(self._target, number, number, prompts, max_tokens, deadline)
        )
        if errors:
            raise ConfigError(f"{self._target.url} did not answer: {dict(errors)}")
        return samples


class Rendered:
    """Our engine in process, asked in words. Satisfies `Side`."""

    def __init__(self, ours: Ours, encode: Callable[[str], Prompt]) -> None:
        self.ours, self.encode = ours, encode

    def decoding(self, prompts: Sequence[str], new_tokens: int) -> Figures:
        """Every round begins after the prompts, as a server's does."""
        ids = [self.encode(prompt) for prompt in prompts]
        while True:
            with closing(self.ours.decoding(ids, new_tokens)) as figures:
                yield next(figures)

    def prefilling(self, prompts: Sequence[str]) -> Figures:
        return self.ours.prefilling([self.encode(prompt) for prompt in prompts])


def decode_rate(samples: Sequence[Sample]) -> float:
    """Tokens per second of replies that were asked for at once, without their first ones.

    Raises ConfigError if no reply has two tokens.
    """
    tokens = sum(sample.output_tokens - 1 for sample in samples if sample.delta_times_s)
    if not tokens:
        raise ConfigError("the replies are too short to be timed")
    first = min(sample.ttft_s for sample in samples)
    last = max(sample.delta_times_s[-1] for sample in samples if sample.delta_times_s)
    return tokens / (last - first)


async def _open(url: str, headers: Mapping[str, str]) -> Target:
    """Who answers there, asked by the first model of its list. Raises ConfigError."""
    target = Target(open_session(REQUEST_S), url, "")
    target.session.headers.update(headers)
    try:
        target.model = await first_model(target)
    except ConfigError:
        await target.session.close()
        raise
    return target
