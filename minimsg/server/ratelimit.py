"""How much a tenant may ask for in a minute: requests, and tokens in and out together.

A bucket holds a minute's worth and fills evenly. A request is taken from it at the door;
its prompt once the length is known (`admit_prompt`), its reply when it ended (`spend`),
which may leave a debt. Counting tokens has a bucket of requests of its own. Every answer
says what is left. Knows tenants by name and routes by what they do, nothing of keys.
Source: Messages API reference, rate limits (there, figures of tokens are rounded; not here).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import ceil, floor
from typing import Final

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.errors import RateLimited
from minimsg.server.auth import TENANT
from minimsg.server.respond import Handler

MINUTE_S: Final = 60.0
ROUNDING: Final = 1e-6  # of a unit; floats lose less in a minute

MESSAGES: Final = "messages"
COUNTS: Final = "count_tokens"
LIMITED: Final = {
    f"{prefix}{route}": kind
    for prefix in ("/v1", "")
    for route, kind in (("/messages", MESSAGES), ("/messages/count_tokens", COUNTS))
}  # route -> the bucket that its requests are taken from; others are free


class Bucket:
    """At most `per_minute` units, filled evenly; below zero is what was spent on credit."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._level, self._since = float(per_minute), clock()

    @property
    def level(self) -> float:
        """Units that are there now."""
        filled = (self._clock() - self._since) * self.per_minute / MINUTE_S
        return min(self._level + filled, float(self.per_minute))

    @property
    def remaining(self) -> int:
        """Whole units that can be spent now."""
        return max(0, floor(self.level + ROUNDING))

    def take(self, amount: float) -> None:
        """Spend `amount`, whether it is there or not."""
        self._level, self._since = self.level - amount, self._clock()

    def seconds_until(self, level: float) -> float:
        """How long until `level` units are there; 0 if they are."""
        return max(0.0, level - self.level - ROUNDING) * MINUTE_S / self.per_minute


class RateLimits:
    """The buckets of every tenant. None as a limit: there is none."""

    def __init__(
        self,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._per_minute = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._clock, self._now = clock, now
        self._buckets: dict[tuple[str, str, str], Bucket] = {}

    @classmethod
    def of(cls, config: ServerConfig) -> RateLimits:
        """The limits of `config`."""
        return cls(config.requests_per_minute, config.tokens_per_minute)

    def admit(self, tenant: str, kind: str = MESSAGES) -> None:
        """Take a request. Raises RateLimited."""
        self._admit(self._bucket(tenant, "requests", kind), 1, "requests")

    def admit_prompt(self, tenant: str, tokens: int) -> None:
        """Take the tokens of a prompt. Raises RateLimited.

        A prompt of more than a minute's tokens needs a full bucket and leaves a debt: else
        it could never be answered, and no `retry-after` would be true.
        """
        self._admit(self._bucket(tenant, "tokens", MESSAGES), tokens, "tokens")

    def spend(self, tenant: str, tokens: int) -> None:
        """Take the tokens of a reply, which are known when they are there."""
        bucket = self._bucket(tenant, "tokens", MESSAGES)
        if bucket is not None:
            bucket.take(tokens)

    def headers(self, tenant: str, kind: str = MESSAGES) -> dict[str, str]:
        """What is left, as the API says it; `reset` is when the bucket is full again."""
        headers: dict[str, str] = {}
        for unit, of_kind in (("requests", kind), ("tokens", MESSAGES)):
            bucket = self._bucket(tenant, unit, of_kind)
            if bucket is not None:
                headers |= {
                    f"anthropic-ratelimit-{unit}-limit": str(bucket.per_minute),
                    f"anthropic-ratelimit-{unit}-remaining": str(bucket.remaining),
                    f"anthropic-ratelimit-{unit}-reset": self._time_when_full(bucket),
                }
        return headers

    def _bucket(self, tenant: str, unit: str, kind: str) -> Bucket | None:
        limit = self._per_minute[unit]
        if limit is None:
            return None
        return self._buckets.setdefault((tenant, unit, kind), Bucket(limit, self._clock))

    def _time_when_full(self, bucket: Bucket) -> str:
        """RFC 3339, the next whole second."""
        wait_s = bucket.seconds_until(bucket.per_minute)
        full = self._now() + timedelta(seconds=wait_s, microseconds=999_999)
        return f"{full:%Y-%m-%dT%H:%M:%SZ}"

    def _admit(self, bucket: Bucket | None, amount: int, unit: str) -> None:
        if bucket is None:
            return
        wait_s = ceil(bucket.seconds_until(min(amount, bucket.per_minute)))
        if wait_s > 0:
            raise RateLimited(
                f"This request would exceed the rate limit of {bucket.per_minute:,} {unit} per "
                f"minute; try again in {wait_s} s.",
                headers={"retry-after": str(wait_s)},
            )
        bucket.take(amount)


RATES: Final = web.AppKey("rates", RateLimits)


@web.middleware
async def limit_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Take the request from its tenant's bucket, before its body is read. Raises RateLimited."""
    kind = _kind(request)
    if kind is not None:
        request.app[RATES].admit(request[TENANT], kind)
    return await handler(request)


def rate_limit_headers(request: web.Request) -> dict[str, str]:
    """What the answer to `request` says of its tenant's limits; nothing if nobody is known."""
    tenant = request.get(TENANT)
    if tenant is None:
        return {}
    return request.app[RATES].headers(tenant, _kind(request) or MESSAGES)


def _kind(request: web.Request) -> str | None:
    resource = request.match_info.route.resource
    return None if resource is None else LIMITED.get(resource.canonical)
