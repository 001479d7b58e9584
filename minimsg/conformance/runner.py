"""A run: reach the server, find what it can do, play the cases, gather the verdicts.

Cases are shuffled by the seed and played some at a time; those that want to be alone come
last, one by one. Knows neither reports nor the terminal: whoever runs is told of each result
as it comes. A single case is played in `player.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from time import perf_counter

from minimsg.conformance.case import Case, Step
from minimsg.conformance.catalog import load_features
from minimsg.conformance.feature import State, missing
from minimsg.conformance.player import Player, result
from minimsg.conformance.reply import Reply
from minimsg.conformance.request import Asking, build
from minimsg.conformance.settings import Profile, Settings
from minimsg.conformance.verdict import Result, Run, Verdict
from minimsg.conformance.wire import Address, exchange
from minimsg.errors import ConfigError

Told = Callable[[Result], None]


class Unreachable(ConfigError):
    """There is no Messages server, or none that answers the plainest request."""


class Session:
    """A server that was reached, and what it can do."""

    def __init__(
        self, settings: Settings, player: Player, server: str, states: dict[str, State]
    ) -> None:
        self.settings = settings
        self.player = player
        self._server = server  # what it calls itself
        self._states = states  # by name of the feature
        self._features = {feature.name: feature for feature in load_features()}

    @classmethod
    async def open(cls, settings: Settings, cases: Sequence[Case]) -> Session:
        """Reach the server and ask for each feature that some case needs.

        Raises Unreachable, and ConfigError for a URL that is none.
        """
        asking = Asking(Address.of(settings.url), settings.version, settings.key)
        model = settings.model or await _first_model(asking, settings.timeout_s)
        player = Player(asking, model, timeout_s=settings.timeout_s)
        server = await _reach(player, settings.url)
        needed = {name for case in cases for name in case.needs}
        asked = [feature for feature in load_features() if feature.name in needed]
        states = {feature.name: await player.probe(feature) for feature in asked}
        return cls(settings, player, server, states)

    async def play(self, case: Case) -> Result:
        """The verdict on one case."""
        reason = missing(case, self._features, self._states)
        return result(case, Verdict.SKIP, reason) if reason else await self.player.play(case)

    def report(self, results: list[Result], seconds: float = 0.0) -> Run:
        """The run that gave `results`."""
        settings = self.settings
        return Run(
            url=settings.url,
            model=self.player.model,
            server=self._server,
            profile=settings.profile,
            version=settings.version,
            seed=settings.seed,
            seconds=round(seconds, 1),
            suite=settings.suite,
            has_key=settings.key is not None,
            features={name: str(state) for name, state in self._states.items()},
            results=results,
        )


async def run(cases: Sequence[Case], settings: Settings, told: Told = lambda _: None) -> Run:
    """Play `cases`. Raises what `Session.open` raises."""
    started = perf_counter()
    session = await Session.open(settings, cases)
    results = await _play_all(session, cases, told)
    return session.report(results, perf_counter() - started)


def applicable(cases: Sequence[Case], profile: Profile) -> list[Case]:
    """The cases of a profile."""
    return [case for case in cases if profile in case.profiles]


async def _reach(player: Player, url: str) -> str:
    """The server's name for itself, if the plainest request works. Raises Unreachable."""
    (plain,) = (feature for feature in load_features() if feature.name == "messages")
    reply = await player.ask(plain)
    if reply.exchange.fault or reply.status != 200:
        what = reply.exchange.fault or f"HTTP {reply.status}: {reply.source[:300]}"
        raise Unreachable(f"{url} does not answer the plainest request: {what}")
    return reply.headers.get("server", "")


async def _first_model(asking: Asking, timeout_s: float) -> str:
    request = build(Step(method="GET", path="/v1/models"), {}, {}, asking)
    reply = Reply(await exchange(asking.address, request.pieces, timeout_s=timeout_s))
    if reply.status == 0:
        raise Unreachable(f"nothing answers: {reply.exchange.fault}")
    body = reply.body if isinstance(reply.body, dict) else {}
    models = body.get("data")
    if isinstance(models, list) and models and isinstance(models[0], dict):
        return str(models[0].get("id"))
    raise Unreachable(f"HTTP {reply.status} of GET /v1/models names no model; give --model")


async def _play_all(session: Session, cases: Sequence[Case], told: Told) -> list[Result]:
    shuffled = list(cases)
    random.Random(session.settings.seed).shuffle(shuffled)
    places = asyncio.Semaphore(session.settings.jobs)
    found: dict[str, Result] = {}

    async def play(case: Case) -> None:
        async with places:
            found[case.id] = await session.play(case)
        told(found[case.id])

    await asyncio.gather(*(play(case) for case in shuffled if not case.alone))
    for case in shuffled:
        if case.alone:
            await play(case)
    return [found[case.id] for case in cases]
