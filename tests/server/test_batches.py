"""/v1/messages/batches: the official SDK's calls, the faults of a whole batch, who sees what."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types.messages import MessageBatch

from minimsg.config import ServerConfig
from minimsg.errors import StoreFull
from minimsg.limits import Limits
from minimsg.store import Store
from minimsg.store.records import BATCH_LIFE_S, RESULTS_LIFE_S

from .batching import ROUTE, ended, hold, requests, results_of, take
from .conftest import Start
from .running import LONG, PLAIN, TAPES, Running, ask
from .test_auth import ALICE, BOB, TENANTS, keys_file
from .test_errors import fail
from .test_sdk import sdk

__all__ = ["keys_file"]  # a fixture

OK = ask(PLAIN)


@pytest.fixture
async def client(scripted: Running) -> AsyncIterator[AsyncAnthropic]:
    async with sdk(scripted) as made:
        yield made


async def test_what_the_sdk_creates_it_finds_reads_and_deletes(
    scripted: Running, client: AsyncAnthropic
) -> None:
    made = await client.messages.batches.create(requests=requests("a", "b", "c"))
    assert made.id.startswith("msgbatch_01")
    assert made.processing_status == "in_progress"
    assert (made.request_counts.processing, made.request_counts.succeeded) == (3, 0)
    assert (made.expires_at - made.created_at).total_seconds() == 24 * 3_600
    assert (made.results_url, made.ended_at) == (None, None)
    batch = await ended(client, made.id)
    assert (batch.request_counts.processing, batch.request_counts.succeeded) == (0, 3)
    assert batch.results_url == f"{scripted.url}{ROUTE}/{made.id}/results"
    found = {line.custom_id: line.result async for line in await results_of(client, made.id)}
    assert found.keys() == {"a", "b", "c"}
    for result in found.values():
        assert result.type == "succeeded"
        assert result.message.content[0].type == "text"
        assert result.message.content[0].text == TAPES[PLAIN]
        assert result.message.usage.service_tier == "batch"
    deleted = await client.messages.batches.delete(made.id)
    assert (deleted.id, deleted.type) == (made.id, "message_batch_deleted")
    for call in (client.messages.batches.retrieve, client.messages.batches.delete):
        with pytest.raises(anthropic.NotFoundError):
            await call(made.id)


async def test_the_sdks_beta_calls_do_the_same(client: AsyncAnthropic) -> None:
    batches = client.beta.messages.batches
    made = await batches.create(
        requests=[{"custom_id": "a", "params": OK}],  # type: ignore[typeddict-item]
        betas=["message-batches-2024-09-24"],
    )
    await ended(client, made.id)
    assert [batch.id async for batch in batches.list()] == [made.id]
    lines = [line async for line in await batches.results(made.id)]
    assert [(line.custom_id, line.result.type) for line in lines] == [("a", "succeeded")]
    assert (await batches.delete(made.id)).id == made.id


async def test_the_sdk_pages_through_all_batches_in_both_directions(client: AsyncAnthropic) -> None:
    batches = client.messages.batches
    made = [(await batches.create(requests=requests("a"))).id for _ in range(5)]
    newest = made[::-1]
    page = await batches.list(limit=2)
    assert ([each.id for each in page.data], page.has_more) == (newest[:2], True)
    assert [each.id async for each in batches.list(limit=2)] == newest
    assert [each.id async for each in batches.list(limit=2, after_id=newest[2])] == newest[3:]
    before = await batches.list(limit=2, before_id=newest[4])
    assert ([each.id for each in before.data], before.has_more) == (newest[2:4], True)


@pytest.mark.parametrize(
    "query", ["after_id=msgbatch_01unknown", "before_id=x", "limit=0", "limit=1001", "limit=x"]
)
async def test_a_page_that_cannot_be_is_400(scripted: Running, query: str) -> None:
    status, error, _ = await fail(scripted, "GET", f"{ROUTE}?{query}")
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(query.split("=")[0] + ":")


def body(*items: str, more: str = "") -> bytes:
    return f'{{"requests": [{", ".join(items)}]{more}}}'.encode()


ITEM = '{"custom_id": "a", "params": {}}'
FAULTS: dict[str, tuple[bytes, str]] = {
    "empty": (body(), "requests: List should have at least 1 item after validation, not 0"),
    "no list": (b'{"requests": {}}', "requests: Input should be a valid list"),
    "missing": (b"{}", "requests: Field required"),
    "equal ids": (
        body(ITEM, ITEM.replace('"a"', '"b"'), ITEM),
        "requests.2.custom_id: custom_id 'a' is not unique in the batch",
    ),
    "pattern": (
        body(ITEM, '{"custom_id": "a b", "params": {}}'),
        "requests.1.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
    ),
    "line break": (
        body('{"custom_id": "a\\n", "params": {}}'),
        "requests.0.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
    ),
    "no id": (body('{"params": {}}'), "requests.0.custom_id: Field required"),
    "id null": (
        body('{"custom_id": null, "params": {}}'),
        "requests.0.custom_id: Input should be a valid string",
    ),
    "no params": (body('{"custom_id": "a"}'), "requests.0.params: Field required"),
    "params list": (
        body('{"custom_id": "a", "params": []}'),
        "requests.0.params: Input should be a valid dictionary",
    ),
    "NaN": (
        body(ITEM.replace("{}", '{"x": NaN}')),
        "requests.0.params.x: Input should be a finite number",
    ),
    "number": (body("7"), "requests.0: Input should be a valid dictionary"),
}
NO_JSON: dict[str, bytes] = {
    "nothing": b"",
    "list": b"[]",
    "cut": body(ITEM)[:-3],
    "cut in a string": b'{"requests": [{"custom_id": "a',
    "quotes without end": b'{"requests": ["' + b'\\"' * 200_000,
    "wrong bracket": b'{"requests": [{]}',
    "in the params": body(ITEM.replace("{}", '{"x": tru}')),
    "beside": body(ITEM, more=', "x": [}'),
    "behind": body(ITEM) + b" x",
    "two commas": body(ITEM, "", ITEM),
    "mark": b"\xef\xbb\xbf" + body(ITEM),
    "no UTF-8": body(ITEM.replace("{}", '{"x": "?"}')).replace(b"?", b"\xff"),
}


@pytest.mark.parametrize(("data", "message"), FAULTS.values(), ids=FAULTS.keys())
async def test_what_is_wrong_with_a_batch_is_told_at_once(
    scripted: Running, data: bytes, message: str
) -> None:
    status, error = await take(scripted, data)
    assert (status, error["error"]["message"]) == (400, message)
    assert await listed(scripted) == []


@pytest.mark.parametrize("data", NO_JSON.values(), ids=NO_JSON.keys())
async def test_a_body_that_is_no_json_is_400(scripted: Running, data: bytes) -> None:
    status, error = await take(scripted, data)
    assert (status, error["error"]["type"]) == (400, "invalid_request_error")
    assert "not valid JSON" in error["error"]["message"]
    assert await listed(scripted) == []
    assert list((scripted.server.store.folder / "incoming").iterdir()) == []


async def listed(running: Running, **headers: str) -> list[dict[str, Any]]:
    async with running.session.get(running.url + ROUTE, headers=headers) as response:
        assert response.status == 200
        found: list[dict[str, Any]] = (await response.json())["data"]
        return found


@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_unknown_fields_are_told_or_refused(start: Start, profile: str) -> None:
    running = await start(config=ServerConfig(profile=profile))
    headers = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
    item = '{"custom_id": "a", "params": {}, "y": 1}'
    async with running.session.post(
        running.url + ROUTE, data=body(item, more=', "x": {}'), headers=headers
    ) as response:
        answer = await response.json()
    if profile == "compat":
        assert (response.status, response.headers["minimsg-ignored"]) == (200, "x, requests.0.y")
    else:
        assert answer["error"]["message"] == "x: Extra inputs are not permitted"


@pytest.mark.parametrize("encode", [gzip.compress, zlib.compress])
async def test_a_body_may_be_compressed(
    scripted: Running, encode: Callable[[bytes], bytes]
) -> None:
    data, name = encode(body(ITEM)), "gzip" if encode is gzip.compress else "deflate"
    assert (await take(scripted, data, content_encoding=name))[0] == 200
    for broken in (data[:-6], data + b"x", b"", b"x" * 100):
        status, error = await take(scripted, broken, content_encoding=name)
        code = error["error"]["details"]["error_code"]
        assert (status, code) == (400, "request_body_encoding_invalid")


def limit(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    small = Limits(**limits)
    for module in ("protocol.batches", "server.batch_body"):
        monkeypatch.setattr(f"minimsg.{module}.LIMITS", small)


async def test_too_many_requests_are_400_and_too_many_bytes_413(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = body(*(f'{{"custom_id": "{number}", "params": {{}}}}' for number in range(4)))
    limit(monkeypatch, batch_requests=3)
    status, error = await take(scripted, data)
    assert (status, error["error"]["message"][:36]) == (400, "requests: List should have at most 3")
    limit(monkeypatch, batch_bytes=len(data) - 1)
    for sent, encoding in ((data, "identity"), (gzip.compress(data), "gzip")):
        status, error = await take(scripted, sent, content_encoding=encoding)
        assert (status, error["error"]["type"]) == (413, "request_too_large")
    limit(monkeypatch, body_bytes=10)
    assert (await take(scripted, data))[0] == 413
    limit(monkeypatch, batch_bytes=len(data), batch_requests=4)
    assert (await take(scripted, data))[0] == 200


async def test_a_disk_that_is_full_is_507_and_the_next_batch_may_fit(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **named: object) -> None:
        raise StoreFull

    with monkeypatch.context() as patched:
        patched.setattr("minimsg.store.batches.extend", full)
        assert (await take(scripted, body(ITEM)))[0] == 507
    assert (await take(scripted, body(ITEM)))[0] == 200


async def test_batches_of_others_are_as_batches_that_never_were(
    start: Start, keys_file: Callable[[object], ServerConfig]
) -> None:
    running = await start(config=keys_file(TENANTS))
    _, made = await take(running, body(ITEM), x_api_key=ALICE)
    bob = {"x-api-key": BOB}
    for method, end in (("GET", ""), ("DELETE", ""), ("GET", "/results"), ("POST", "/cancel")):
        seen = [
            await fail(running, method, f"{ROUTE}/{id}{end}", headers=bob)
            for id in (made["id"], "msgbatch_01unknown")
        ]
        assert [status for status, _, _ in seen] == [404, 404]
        assert seen[0][1] == seen[1][1]
    assert await listed(running, **bob) == []
    status, _, _ = await fail(running, "GET", f"{ROUTE}?after_id={made['id']}", headers=bob)
    assert status == 400
    assert [each["id"] for each in await listed(running, **{"x-api-key": ALICE})] == [made["id"]]


async def test_before_the_end_there_are_no_results_and_no_counts_and_nothing_is_deleted(
    scripted: Running, client: AsyncAnthropic
) -> None:
    made = await client.messages.batches.create(requests=requests("a", "b", tape=LONG))
    with pytest.raises(anthropic.AnthropicError, match="No `results_url`"):
        await client.messages.batches.results(made.id)
    status, error, _ = await fail(scripted, "GET", f"{ROUTE}/{made.id}/results")
    assert (status, error["type"]) == (404, "not_found_error")
    with pytest.raises(anthropic.BadRequestError, match="has not ended"):
        await client.messages.batches.delete(made.id)


async def test_canceling_lets_what_runs_finish_and_ends_the_rest(
    scripted: Running, client: AsyncAnthropic
) -> None:
    names = [f"r{number}" for number in range(9)]
    async with hold(scripted) as running_now:
        made = await client.messages.batches.create(requests=requests(*names))
        await running_now()
        canceling = await client.messages.batches.cancel(made.id)
        assert canceling.processing_status == "canceling"
        assert canceling.cancel_initiated_at is not None
        assert canceling.request_counts.processing == 9
        assert await client.messages.batches.cancel(made.id) == canceling
    batch = await ended(client, made.id)
    counts = batch.request_counts
    assert counts.succeeded > 0
    assert counts.canceled == 9 - counts.succeeded > 0
    lines = [line async for line in await results_of(client, made.id)]
    assert sorted(line.custom_id for line in lines) == names
    assert sum(line.result.type == "canceled" for line in lines) == counts.canceled
    with pytest.raises(anthropic.BadRequestError, match="has ended"):
        await client.messages.batches.cancel(made.id)


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_what_has_not_begun_in_a_day_expires_and_results_are_gone_after_29(
    scripted: Running, client: AsyncAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = scripted.server.store, Clock()
    monkeypatch.setattr(store, "clock", clock)
    async with hold(scripted) as running_now:
        made = await client.messages.batches.create(requests=requests(*"abcdefgh"))
        await running_now()
        clock.now += BATCH_LIFE_S - 1
        await store.tidy()
        assert await status_of(client, made) == ("in_progress", 0)
        clock.now += 1
        await store.tidy()
    batch = await ended(client, made.id)
    assert batch.request_counts.expired == 8 - batch.request_counts.succeeded > 0
    types = [line.result.type async for line in await results_of(client, made.id)]
    assert types.count("expired") == batch.request_counts.expired
    clock.now += RESULTS_LIFE_S - BATCH_LIFE_S
    await store.tidy()
    gone = await client.messages.batches.retrieve(made.id)
    assert gone.archived_at is not None
    assert (gone.results_url, gone.request_counts) == (None, batch.request_counts)
    code, _, _ = await fail(scripted, "GET", f"{ROUTE}/{made.id}/results")
    assert code == 404


async def status_of(client: AsyncAnthropic, batch: MessageBatch) -> tuple[str, int]:
    found = await client.messages.batches.retrieve(batch.id)
    return found.processing_status, found.request_counts.expired


async def test_strict_asks_for_a_version_and_known_betas(start: Start) -> None:
    running = await start(config=ServerConfig(profile="strict"))
    for method, path in (
        ("POST", ROUTE),
        ("GET", ROUTE),
        ("GET", f"{ROUTE}/x"),
        ("DELETE", f"{ROUTE}/x"),
        ("POST", f"{ROUTE}/x/cancel"),
        ("GET", f"{ROUTE}/x/results"),
    ):
        status, error, _ = await fail(running, method, path)
        assert (status, error["message"]) == (400, "anthropic-version: header is required")
        headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "foo"}
        status, error, _ = await fail(running, method, path, headers=headers)
        assert (status, "`foo`" in error["message"]) == (400, True)


@pytest.mark.parametrize("prefix", ["/v1", ""])
async def test_probes_and_methods(scripted: Running, prefix: str) -> None:
    _, made = await take(scripted, body(ITEM))
    for path in ("/messages/batches", f"/messages/batches/{made['id']}"):
        async with scripted.session.head(scripted.url + prefix + path) as response:
            assert (response.status, await response.read()) == (200, b"")
    path = f"{prefix}/messages/batches/{made['id']}"
    for method, route, allowed in (
        ("PUT", "", "DELETE, GET, HEAD, OPTIONS"),
        ("POST", "/results", "GET, HEAD, OPTIONS"),
        ("GET", "/cancel", "OPTIONS, POST"),
    ):
        status, error, headers = await fail(scripted, method, path + route)
        assert (status, error["type"]) == (405, "invalid_request_error")
        assert headers["Allow"] == allowed


async def test_the_results_may_be_probed_and_a_deleted_batch_is_no_cursor(
    scripted: Running, client: AsyncAnthropic
) -> None:
    ids = [(await client.messages.batches.create(requests=requests("a"))).id for _ in range(2)]
    for id in ids:
        await ended(client, id)
    async with scripted.session.head(f"{scripted.url}{ROUTE}/{ids[0]}/results") as response:
        assert (response.status, await response.read()) == (200, b"")
    await client.messages.batches.delete(ids[0])
    for cursor in ("after_id", "before_id"):
        status, error, _ = await fail(scripted, "GET", f"{ROUTE}?{cursor}={ids[0]}")
        assert (status, error["type"]) == (400, "invalid_request_error")
    assert [each["id"] for each in await listed(scripted)] == ids[1:]


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_results_that_go_while_they_are_read_end_torn_and_not_in_order(
    is_deleted: bool, scripted: Running, client: AsyncAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(scripted.server.store, "clock", clock)
    made = await client.messages.batches.create(requests=requests("a", "b"))
    await ended(client, made.id)
    read = Store.results

    async def slowly(store: Store, id: str) -> AsyncIterator[Any]:
        async for result in read(store, id):
            yield result
            clock.now += RESULTS_LIFE_S
            await (store.delete_batch("local", id) if is_deleted else store.tidy())
            store.results = read.__get__(store)  # type: ignore[method-assign]
            async for _ in store.results(id):
                pass

    monkeypatch.setattr(Store, "results", slowly)
    monkeypatch.setattr("minimsg.server.batches.WRITE_BYTES", 1)
    url = f"{scripted.url}{ROUTE}/{made.id}/results"
    async with scripted.session.get(url) as response:
        assert response.status == 200
        with pytest.raises(aiohttp.ClientError):
            await response.read()
