"""GET /metrics: the server in numbers, as Prometheus reads them.

Names are `minimsg_` and vLLM's, with vLLM's meanings (API.md has the table), so that a
dashboard for the one draws the other. Labels have few values, all of them ours: never
what a client sent, never a tenant. What the engine counts is in `engine/meter.py`; a
scrape reads it, and a request or a token costs nothing here but one addition a request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Final, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from minimsg.engine.meter import Distribution
from minimsg.engine.worker import EngineWorker
from minimsg.protocol.message import StopReason
from minimsg.server.middleware import CLIENT_LEFT
from minimsg.server.respond import Handler
from minimsg.server.state import SERVER
from minimsg.store import Store
from minimsg.store.records import ResultKind

PREFIX: Final = "minimsg_"
LAGS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
LAG_INTERVAL_S: Final = 0.25  # four looks a second are no load and miss no stall that is felt
OTHER: Final = "other"  # no such route, or not that method
ERROR, NONE = "error", "none"  # stop reasons: of a reply that broke off, and of all else

Ending = tuple[str, str, str]  # endpoint, status, stop reason


class Metrics(Collector):
    """The figures of one server: those of its worker, and what its middleware counts."""

    def __init__(self, worker: EngineWorker) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.loop_lag = Distribution(LAGS)
        self._worker = worker
        self._requests: dict[Ending, int] = {}
        self._stored: list[Metric] = []

    def count(self, ending: Ending) -> None:
        """One more request that ended so."""
        self._requests[ending] = self._requests.get(ending, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """Everything as of now; asked by the registry."""
        yield from self._stored
        yield from self._gauges()
        yield from self._counters()
        yield from self._histograms()
        yield from self._kernel_check()

    async def read(self, store: Store) -> None:
        """Take the figures of `store`, which lie on disk; `collect` shows them."""
        found, num_running = await store.figures(), store.num_running
        items = GaugeMetricFamily(PREFIX + "batch_items", "Of message batches.", labels=["state"])
        items.add_metric(["waiting"], max(0, found.left - num_running))
        items.add_metric(["running"], num_running)
        for outcome in get_args(ResultKind):
            items.add_metric([outcome], getattr(found, outcome))
        created_at = found.oldest_created_at
        age_s = 0.0 if created_at is None else max(0.0, store.clock() - created_at)
        self._stored = [
            items,
            _gauge("batch_oldest_age_seconds", "Of a message batch that has not ended.", age_s),
            _gauge("files", "Uploaded files.", found.files),
            _gauge("files_bytes", "What they hold.", found.file_bytes),
            _counter("store_failures", "Writes the disk refused.", store.disk.num_failures),
        ]

    def _gauges(self) -> Iterator[Metric]:
        stats = self._worker.stats()
        ratio = stats.used_pages / stats.num_pages
        yield _gauge("requests_running", "Requests in the running batch.", stats.running)
        yield _gauge("requests_waiting", "Requests that wait for a place in it.", stats.waiting)
        yield _gauge("kv_cache_usage_ratio", "Pages in use, of all; 1 is all of them.", ratio)
        yield _gauge("pages_pinned", "Pages that cache_control keeps.", stats.pinned_pages)
        pages = GaugeMetricFamily(PREFIX + "pages", "Pages of the KV cache.", labels=["state"])
        pages.add_metric(["free"], stats.free_pages)
        pages.add_metric(["cached"], stats.cached_pages)
        pages.add_metric(["used"], stats.used_pages)
        yield pages

    def _counters(self) -> Iterator[Metric]:
        stats, meter = self._worker.stats(), self._worker.meter
        yield _counter("prefix_cache_queries", "Prompt tokens looked up.", stats.prefix_queries)
        yield _counter("prefix_cache_hits", "Prompt tokens found there.", stats.prefix_hits)
        yield _counter("preemptions", "Times a request gave its pages back.", stats.preemptions)
        yield _counter(
            "spec_decode_num_draft_tokens", "Tokens that were drafted.", stats.drafted_tokens
        )
        yield _counter(
            "spec_decode_num_accepted_tokens", "Drafts that came.", stats.accepted_tokens
        )
        yield _counter("prompt_tokens", "Tokens of computed prompts.", meter.prompt_tokens)
        yield _counter("generation_tokens", "Tokens that were generated.", meter.generated_tokens)
        yield _counter("engine_restarts", "Starts after a failure.", stats.restarts)
        requests = CounterMetricFamily(
            PREFIX + "requests",
            "Requests that have ended.",
            labels=["endpoint", "status", "stop_reason"],
        )
        for ending, number in list(self._requests.items()):
            requests.add_metric(ending, number)
        yield requests

    def _kernel_check(self) -> Iterator[Metric]:
        check = self._worker.engine.runner.check
        if check is None:
            return
        checks = check.checks
        yield _counter(
            "kernel_checks", "Steps beside the reference.", checks.num_steps if checks else 0
        )
        errors = GaugeMetricFamily(
            PREFIX + "kernel_check_error_ratio",
            "Largest difference from the reference, of the largest value there.",
            labels=["layer"],
        )
        for layer, error in enumerate(checks.worst if checks else ()):
            errors.add_metric([str(layer)], error)
        yield errors

    def _histograms(self) -> Iterator[Metric]:
        meter = self._worker.meter
        yield _histogram("time_to_first_token_seconds", "From arrival.", meter.time_to_first_token)
        yield _histogram("inter_token_latency_seconds", "Between two tokens.", meter.inter_token)
        yield _histogram("e2e_request_latency_seconds", "From arrival to end.", meter.whole_time)
        yield _histogram("queue_time_seconds", "From arrival to first step.", meter.queue_time)
        yield _histogram("event_loop_lag_seconds", "How late timers are.", self.loop_lag)


METRICS: Final = web.AppKey("metrics", Metrics)
STOP_REASON: Final = web.RequestKey("stop_reason", str)


async def metrics(request: web.Request) -> web.Response:
    """All figures in Prometheus's text format 0.0.4, which every scraper reads."""
    await request.app[METRICS].read(request.app[SERVER].store)
    body = generate_latest(request.app[METRICS].registry)
    return web.Response(body=body, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


@web.middleware
async def count_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count a request by how it ended, also one whose client left."""
    status = CLIENT_LEFT
    try:
        response = await handler(request)
        status = response.status
        return response
    finally:
        request.app[METRICS].count(_ending(request, status))


def note_stop_reason(request: web.Request, reason: StopReason) -> None:
    """Say how the reply to a request ended."""
    request[STOP_REASON] = reason


async def watch_loop(app: web.Application) -> AsyncIterator[None]:
    """Measure the event loop's lag for as long as the server runs."""
    watching = asyncio.create_task(_measure(app[METRICS].loop_lag))
    yield
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def _measure(lag: Distribution) -> None:
    while True:
        due = time.monotonic() + LAG_INTERVAL_S
        await asyncio.sleep(LAG_INTERVAL_S)
        lag.add(max(0.0, time.monotonic() - due))


def _ending(request: web.Request, status: int) -> Ending:
    """`/v1` may be left out and is; a reply of 200 that has no stop reason was cut by an error."""
    resource = request.match_info.route.resource
    endpoint = (resource.canonical.removeprefix("/v1") or "/") if resource else OTHER
    was_cut = endpoint == "/messages" and status == 200
    return endpoint, str(status), request.get(STOP_REASON, ERROR if was_cut else NONE)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, meaning, value)


def _counter(name: str, meaning: str, value: int) -> Metric:
    return CounterMetricFamily(PREFIX + name, meaning, value)


def _histogram(name: str, meaning: str, durations: Distribution) -> Metric:
    """The bins as Prometheus has them: each holds all that are shorter."""
    sum_s, total = durations.sum_s, 0
    buckets: list[tuple[str, float]] = []
    bounds = [*map(str, durations.bounds), "+Inf"]
    for bound, number in zip(bounds, list(durations.counts), strict=True):
        total += number
        buckets.append((bound, total))
    return HistogramMetricFamily(PREFIX + name, meaning, buckets=buckets, sum_value=sum_s)
