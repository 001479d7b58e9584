"""GET /metrics, read by prometheus_client's own parser."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import time
from pathlib import Path
from typing import get_args

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from minimsg.engine.kernel_check import KernelCheck
from minimsg.protocol.message import StopReason
from minimsg.server.batch_runner import NUM_AT_ONCE

from .batching import hold, requests, take
from .conftest import Start
from .running import LONG, PLAIN, STOPS, Running, ask, break_engine, eventually
from .test_files import form, upload

STATES = ("waiting", "running", "succeeded", "errored", "canceled", "expired")
PAGE = (Path(__file__).parents[2] / "API.md").read_text()
Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scrape(running: Running) -> Figures:
    """Every sample by its name, without the prefix, and its labels."""
    async with running.session.get(running.url + "/metrics") as response:
        assert response.status == 200
        text = await response.text()
    found: Figures = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = sample.name.removeprefix("minimsg_"), tuple(sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def of(figures: Figures, name: str, **labels: str) -> float:
    return figures[name, tuple(sorted(labels.items()))]


def requests_of(figures: Figures) -> dict[tuple[str, str, str], float]:
    """Those that have ended, by endpoint, status and stop reason."""
    found = {}
    for (name, labels), value in figures.items():
        if name == "requests_total":
            endpoint, status, stop_reason = (text for _, text in labels)
            found[endpoint, status, stop_reason] = value
    return found


def counters(figures: Figures) -> Figures:
    """The samples that may never go down."""
    endings = ("_total", "_bucket", "_count", "_sum")
    return {key: value for key, value in figures.items() if key[0].endswith(endings)}


async def test_figures_are_those_of_the_usage_that_clients_saw(scripted: Running) -> None:
    answers = [await scripted.post(ask(PLAIN)) for _ in range(2)]
    usages = [answer["usage"] for answer, _ in answers]
    prompt = sum(usage["input_tokens"] for usage in usages)  # type: ignore[call-overload, index, misc]
    generated = sum(usage["output_tokens"] for usage in usages)  # type: ignore[call-overload, index, misc]
    reused = sum(int(response.headers["minimsg-reused-tokens"]) for _, response in answers)
    assert reused > 0
    found = await scrape(scripted)
    assert of(found, "prompt_tokens_total") == of(found, "prefix_cache_queries_total") == prompt
    assert of(found, "prefix_cache_hits_total") == reused
    assert of(found, "generation_tokens_total") == generated
    assert of(found, "inter_token_latency_seconds_count") == generated - 2
    for name in ("time_to_first_token", "e2e_request_latency", "queue_time"):
        seconds = f"{name}_seconds"
        assert of(found, f"{seconds}_count") == of(found, f"{seconds}_bucket", le="+Inf") == 2
    whole, first = "e2e_request_latency_seconds_sum", "time_to_first_token_seconds_sum"
    gaps = of(found, "inter_token_latency_seconds_sum")
    assert of(found, whole) == pytest.approx(of(found, first) + gaps)  # the last token is the end


async def test_bins_hold_all_that_is_shorter(scripted: Running) -> None:
    await scripted.post(ask(PLAIN))
    found = await scrape(scripted)
    for name in ("time_to_first_token", "inter_token_latency", "e2e_request_latency"):
        bins = [value for key, value in found.items() if key[0] == f"{name}_seconds_bucket"]
        assert len(bins) > 10
        assert bins == sorted(bins)


async def test_requests_are_told_apart_by_route_status_and_end(scripted: Running) -> None:
    await scripted.post(ask(PLAIN))
    await scripted.post(ask(PLAIN, max_tokens=3), "/messages")
    await scripted.stream(ask(STOPS, stop_sequences=["STOP"]))
    await scripted.post(ask(PLAIN, max_tokens=-1), status=400)
    await scripted.post(ask(PLAIN), "/v1/messages/count_tokens")
    assert requests_of(await scrape(scripted)) == {
        ("/messages", "200", "end_turn"): 1,
        ("/messages", "200", "max_tokens"): 1,
        ("/messages", "200", "stop_sequence"): 1,
        ("/messages", "400", "none"): 1,
        ("/messages/count_tokens", "200", "none"): 1,
    }


async def test_a_client_that_left_and_a_reply_that_broke_off_are_counted_so(
    scripted: Running,
) -> None:
    body = ask(LONG, stream=True)
    async with aiohttp.ClientSession() as session:
        response = await session.post(scripted.url + "/v1/messages", json=body)
        await response.content.readline()
        response.close()
    await scripted.until_free()
    stream = asyncio.create_task(scripted.stream(body))
    await eventually(lambda: scripted.server.worker.stats().running == 1)
    break_engine(scripted)
    assert (await stream)[-1]["type"] == "error"
    await eventually(lambda: scripted.server.num_requests == 0)
    assert requests_of(await scrape(scripted)) == {
        ("/messages", "499", "none"): 1,
        ("/messages", "200", "error"): 1,
    }


async def test_no_label_is_what_a_client_sent(scripted: Running) -> None:
    for method in ("GET", "POST", "BREW"):
        for path in ("/v1/brew", "/v1/messages/brew", "/v1/models/brew", "/brew?brew=1"):
            headers = {"x-api-key": "brew", "user-agent": "brew"}
            url = scripted.url + path
            async with scripted.session.request(method, url, headers=headers) as response:
                assert response.status >= 400
    await scripted.post({"model": "brew", "stop_sequences": ["brew"]}, status=400)
    figures = await scrape(scripted)
    assert "brew" not in str(figures)
    endpoints = {route.resource.canonical for route in scripted.app.router.routes()}  # type: ignore[union-attr]
    reasons = {"none", "error", *get_args(StopReason)}
    for endpoint, status, reason in requests_of(figures):
        assert endpoint in {*endpoints, "other"}
        assert status.isdigit()
        assert reason in reasons


async def test_it_is_plain_text_of_the_version_that_every_scraper_reads(tiny: Running) -> None:
    for method in ("GET", "HEAD"):
        async with tiny.session.request(method, tiny.url + "/metrics") as response:
            assert response.status == 200
            expected = "text/plain; version=0.0.4; charset=utf-8"
            assert response.headers["content-type"] == expected
            assert bool(await response.read()) == (method == "GET")


async def test_drafts_are_counted_and_those_that_came(scripted: Running) -> None:
    counts = scripted.server.worker.engine.draft_counts
    counts.proposed, counts.accepted = 7, 3
    found = await scrape(scripted)
    assert of(found, "spec_decode_num_draft_tokens_total") == 7
    assert of(found, "spec_decode_num_accepted_tokens_total") == 3


async def test_a_kernel_that_is_checked_has_its_errors_by_layer(tiny: Running) -> None:
    runner = tiny.server.worker.engine.runner
    runner.check = KernelCheck(runner.model, share=1.0)
    await tiny.post(ask(PLAIN, model="tiny", max_tokens=4))
    found = await scrape(tiny)
    assert of(found, "kernel_checks_total") == 4
    layers = [labels for name, labels in found if name == "kernel_check_error_ratio"]
    assert layers == [(("layer", str(layer)),) for layer in range(len(runner.cache.layers))]
    assert runner.check.checks is not None
    assert max(runner.check.checks.worst) < 1e-4


async def test_two_servers_share_no_figure(start: Start) -> None:
    one, other = await start("scripted"), await start("scripted")
    await one.post(ask(PLAIN))
    assert requests_of(await scrape(one)) == {("/messages", "200", "end_turn"): 1}
    found = await scrape(other)
    assert requests_of(found) == {}
    assert of(found, "generation_tokens_total") == 0


async def test_under_load_and_over_a_restart_pages_add_up_and_no_counter_goes_down(
    scripted: Running,
) -> None:
    async def client(number: int) -> None:
        for _ in range(3):
            body = ask(LONG, max_tokens=40 + number, stream=True)
            async with scripted.session.post(scripted.url + "/v1/messages", json=body) as response:
                await response.read()
            await eventually(lambda: scripted.server.is_ready)

    clients = [asyncio.create_task(client(number)) for number in range(8)]
    before: Figures = {}
    num_scrapes = 0
    while not all(task.done() for task in clients):
        found = await scrape(scripted)
        pages = [of(found, "pages", state=state) for state in ("free", "cached", "used")]
        assert sum(pages) == 1_024
        assert min(pages) >= 0
        assert of(found, "kv_cache_usage_ratio") == pages[2] / 1_024
        assert of(found, "prefix_cache_hits_total") <= of(found, "prefix_cache_queries_total")
        assert all(found[key] >= value for key, value in counters(before).items())
        before, num_scrapes = found, num_scrapes + 1
        if num_scrapes == 5:
            break_engine(scripted)
    await asyncio.gather(*clients)
    found = await scrape(scripted)
    assert of(found, "engine_restarts_total") == 1
    assert of(found, "requests_running") == of(found, "requests_waiting") == 0
    assert num_scrapes > 10


async def test_what_is_stored_is_told_by_state_and_for_nobody(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = scripted.server.store
    async with hold(scripted) as running_now:
        status, made = await take(scripted, json.dumps({"requests": requests(*"abcdefg")}).encode())
        assert status == 200
        await running_now()
        later = store.clock() + 100
        monkeypatch.setattr(store, "clock", lambda: later)
        found = await scrape(scripted)
        assert of(found, "batch_items", state="running") == NUM_AT_ONCE
        assert of(found, "batch_items", state="waiting") == 7 - NUM_AT_ONCE
        assert 99 < of(found, "batch_oldest_age_seconds") < 130
        await store.cancel_batch("local", made["id"])
    await eventually(lambda: store.num_running == 0)
    await upload(scripted, form(data=b"four"))
    found = await scrape(scripted)
    items = {state: of(found, "batch_items", state=state) for state in STATES}
    assert items == {
        "waiting": 0,
        "running": 0,
        "succeeded": NUM_AT_ONCE,
        "errored": 0,
        "canceled": 7 - NUM_AT_ONCE,
        "expired": 0,
    }
    assert of(found, "batch_oldest_age_seconds") == 0
    assert (of(found, "files"), of(found, "files_bytes")) == (1, 4)


async def test_a_disk_that_takes_no_more_is_told_until_it_does(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def takes_writes() -> object:
        async with scripted.session.get(f"{scripted.url}/health") as response:
            assert response.status == 200
            return (await response.json())["store"]

    def full(*args: object, **named: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    assert await takes_writes() == {"takes_writes": True}
    with monkeypatch.context() as patched:
        patched.setattr("minimsg.store.batches.begin", full)
        body = json.dumps({"requests": requests("a")}).encode()
        assert (await take(scripted, body))[0] == 507
    assert await takes_writes() == {"takes_writes": False}
    assert of(await scrape(scripted), "store_failures_total") == 1
    assert (await take(scripted, body))[0] == 200
    assert await takes_writes() == {"takes_writes": True}


async def test_the_lag_of_the_event_loop_is_felt(scripted: Running) -> None:
    await asyncio.sleep(0.05)
    time.sleep(0.6)  # noqa: ASYNC251 - the stall that is to be seen
    await asyncio.sleep(0.3)
    found = await scrape(scripted)
    assert of(found, "event_loop_lag_seconds_sum") > 0.3


async def test_the_page_names_every_figure_and_no_other(scripted: Running) -> None:
    await scripted.post(ask(PLAIN))
    table = re.search(r"<!-- table: metrics -->\n((?:\|.*\n)+)", PAGE)
    assert table
    documented = {row.split("`")[1] for row in table.group(1).splitlines()[2:]}
    shown = {re.sub("_(bucket|count|sum)$", "", name) for name, _ in await scrape(scripted)}
    assert documented == shown
