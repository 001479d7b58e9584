"""What becomes of the requests of a batch: one wrong among many, restarts, failures, full disks."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from minimsg.config import EngineConfig, ServerConfig
from minimsg.errors import StoreFull
from minimsg.limits import LIMITS
from minimsg.server.batch_runner import NUM_AT_ONCE
from minimsg.store.records import MAX_DEATHS
from minimsg.store.store import DATABASE

from .batching import ROUTE, ended, hold, requests, take
from .conftest import Start
from .running import LONG, PLAIN, TAPES, Json, Running, ask, break_engine, eventually
from .test_files import form, upload
from .test_sdk import sdk

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"stream": True}, "stream: is not supported in a message batch"),
    ({"speed": "fast"}, "speed: is not supported in a message batch"),
    ({"fallbacks": "default"}, "fallbacks: is not supported in a message batch"),
    ({"max_tokens": 0}, "max_tokens: must be at least 1 in a message batch"),
    ({"thread": {"type": "create"}}, "thread: threads are not supported"),
    ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
    ({"messages": []}, "messages: at least one message is required"),
    ({"model": "nobody"}, "model: nobody"),
]


async def run(running: Running, items: Any, **headers: str) -> dict[str, Json]:
    """The results of a batch of `items`, by custom_id, none of them twice."""
    return await results(running, await create(running, items, **headers))


async def create(running: Running, items: Any, **headers: str) -> str:
    """The id of a new batch of `items`."""
    status, made = await take(running, json.dumps({"requests": items}).encode(), **headers)
    assert status == 200, made
    return str(made["id"])


async def results(running: Running, id: str) -> dict[str, Json]:
    async with sdk(running) as client:
        batch = await ended(client, id)
    assert batch.results_url is not None
    headers = {"anthropic-version": "2023-06-01"}
    async with running.session.get(batch.results_url, headers=headers) as response:
        assert (response.status, response.content_type) == (200, "application/x-jsonl")
        text = await response.text()
    assert text.endswith("\n")
    lines = [json.loads(line) for line in text.splitlines()]
    found = {line["custom_id"]: line["result"] for line in lines}
    assert len(found) == len(lines)
    kinds = [result["type"] for result in found.values()]
    assert batch.request_counts.model_dump() == {
        "processing": 0,
        **{kind: kinds.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")},
    }
    return found


async def test_what_a_request_of_a_batch_may_not_ask_is_its_own_error(scripted: Running) -> None:
    items = [{"custom_id": f"{n}", "params": ask(PLAIN) | w} for n, (w, _) in enumerate(WRONG)]
    found: Any = await run(scripted, [*items, *requests("good")])
    assert found["good"]["type"] == "succeeded"
    for number, (_, message) in enumerate(WRONG):
        result = found[f"{number}"]
        assert result["type"] == "errored"
        envelope = result["error"]
        assert envelope["type"] == "error"
        assert envelope["request_id"].startswith("req_")
        kind = "not_found_error" if "nobody" in message else "invalid_request_error"
        assert envelope["error"]["type"] == kind
        assert message in envelope["error"]["message"]
    assert found["4"]["error"]["error"]["details"] == {"error_code": "thread_unsupported_request"}


async def test_one_wrong_request_is_no_others_concern(scripted: Running) -> None:
    items = requests(*(f"r{number}" for number in range(200)), max_tokens=2)
    items[77]["params"] = {"model": "scripted", "max_tokens": "many"}
    found = await run(scripted, items)
    assert [name for name, result in found.items() if result["type"] != "succeeded"] == ["r77"]
    assert len(found) == 200


@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_version_profile_and_betas_of_whoever_creates_it_hold_for_all(
    start: Start, profile: str
) -> None:
    running = await start(config=ServerConfig(profile=profile))
    edits: Any = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    items = [
        *requests("sampled", temperature=0.5),
        *requests("edited", context_management=edits),
        *requests("odd", no_such_field=1),
    ]
    beta = "context-management-2025-06-27"
    expected = {
        ("2023-06-01", beta): [True, True, False],
        ("2026-10-21", beta): [False, True, False],
        ("2023-06-01", ""): [True, False, False],
    }
    for (version, betas), right in expected.items():
        headers = {"anthropic_version": version} | ({"anthropic_beta": betas} if betas else {})
        found = await run(running, items, **headers)
        succeeded = [found[each["custom_id"]]["type"] == "succeeded" for each in items]
        assert succeeded == (right if profile == "strict" else [True] * 3)


async def test_a_large_request_is_read_in_a_process_of_its_own(scripted: Running) -> None:
    big = ask(PLAIN, metadata={"user_id": "x" * 50}, system="x" * (LIMITS.inline_body_bytes + 1))
    found: Any = await run(scripted, [{"custom_id": "big", "params": big}])
    assert found["big"]["error"]["error"]["message"].startswith("prompt is too long")


async def test_batched_requests_find_what_others_left_in_the_cache(tiny: Running) -> None:
    mark: Any = {"type": "ephemeral"}
    system: Any = [{"type": "text", "text": "Say little. " * 40, "cache_control": mark}]
    items = requests(*"abcdefgh", model="tiny", max_tokens=2, system=system)
    found: Any = await run(tiny, items)
    read = [each["message"]["usage"]["cache_read_input_tokens"] for each in found.values()]
    assert sum(count > 0 for count in read) >= 8 - NUM_AT_ONCE


@pytest.fixture
def kept(tmp_path: Path) -> ServerConfig:
    return ServerConfig(data_dir=tmp_path / "data")


async def test_a_new_server_goes_on_where_the_last_one_stopped(
    start: Start, kept: ServerConfig
) -> None:
    running = await start(config=kept)
    items = requests(*(f"r{number}" for number in range(40)), max_tokens=5)
    id = await create(running, items)
    first = await done(running, id, 5)
    await stop(running)
    again = await start(config=kept)
    found = await results(again, id)
    assert set(found) == {each["custom_id"] for each in items}
    assert {result["type"] for result in found.values()} == {"succeeded"}
    for custom_id, body in first.items():
        assert found[custom_id] == json.loads(body)


async def done(running: Running, id: str, num_items: int) -> dict[str, bytes]:
    """The results that are there once there are `num_items`; not yet all."""
    while True:
        found = {each.custom_id: each.body async for each in running.server.store.results(id)}
        if len(found) >= num_items:
            return {custom_id: body for custom_id, body in found.items() if body is not None}
        await asyncio.sleep(0.005)


async def stop(running: Running) -> None:
    """End a server in order, as its process would."""
    await running.app.shutdown()
    await running.app.cleanup()


async def test_what_ran_when_the_server_stopped_in_a_canceled_batch_is_not_begun_again(
    start: Start, kept: ServerConfig
) -> None:
    running = await start(config=kept)
    async with hold(running) as running_now:
        id = await create(running, requests(*"abcdef"))
        await running_now()
        await running.server.store.cancel_batch("local", id)
        await stop(running)
    found = await results(await start(config=kept), id)
    assert {result["type"] for result in found.values()} == {"canceled"}


async def test_a_request_beneath_which_servers_die_is_errored_in_the_end(
    start: Start, kept: ServerConfig
) -> None:
    running = await start(config=kept)
    async with hold(running) as running_now:
        id = await create(running, requests(*"abcd"))
        await running_now()
        running.server.store._claims.items.clear()  # as after a death, nothing is put back
        await stop(running)
    with closing(sqlite3.connect(running.server.store.folder / DATABASE)) as connection:
        connection.execute(f"UPDATE batch_items SET num_begun = {MAX_DEATHS} WHERE position = 2")
        connection.commit()
    found: Any = await results(await start(config=kept), id)
    assert {name for name, result in found.items() if result["type"] == "succeeded"} == set("abd")
    assert found["c"]["error"]["error"] == {
        "type": "api_error",
        "message": "The server died 3 times while it ran this request.",
    }


VARIED: dict[str, dict[str, Any]] = {
    "tools": {"tools": [{"name": "now", "input_schema": {"type": "object"}}]},
    "forced tool": {
        "tools": [
            {
                "name": "now",
                "input_schema": {"type": "object", "properties": {"utc": {"type": "boolean"}}},
            }
        ],
        "tool_choice": {"type": "tool", "name": "now"},
    },
    "thinking": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1030},
    "cache": {"cache_control": {"type": "ephemeral"}},
    "format": {
        "output_config": {"format": {"type": "json_schema", "schema": {"enum": ["yes", "no"]}}}
    },
    "stops": {"stop_sequences": ["e"]},
    "server tool": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "no such file": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "document", "source": {"type": "file", "file_id": "file_01unknown0"}}
                ],
            }
        ]
    },
    "too long": {"system": "word " * 20_000},
    "URL": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}}
                ],
            }
        ]
    },
}


async def test_in_a_batch_a_request_gets_what_it_gets_alone(tiny: Running) -> None:
    made = await upload(tiny, form(data=b"The code is 7421."))
    source = {"type": "file", "file_id": made["id"]}
    document = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    bodies: dict[str, Json] = {
        name: ask(PLAIN, model="tiny", max_tokens=8, seed=1, temperature=0) | fields
        for name, fields in (VARIED | {"file": {"messages": document}}).items()
    }
    items = [{"custom_id": name.replace(" ", "_"), "params": each} for name, each in bodies.items()]
    found: Any = await run(tiny, items)
    kinds = set()
    for name, body in bodies.items():
        result = found[name.replace(" ", "_")]
        async with tiny.session.post(f"{tiny.url}/v1/messages", json=body) as response:
            alone = await response.json()
        kinds.add(result["type"])
        if response.status == 200:
            message = result["message"]
            for key in ("stop_reason", "stop_sequence", "model", "role"):
                assert message[key] == alone[key], name
            assert shown(message) == shown(alone), name
            assert message["usage"]["service_tier"] == "batch"
        else:
            assert result["error"]["error"] == alone["error"], name
    assert kinds == {"succeeded", "errored"}


def shown(message: Any) -> list[Any]:
    """The blocks of a message without what is made up anew each time."""
    return [
        {key: value for key, value in block.items() if key not in ("id", "signature")}
        for block in message["content"]
    ]


async def test_stopping_leaves_no_task(start: Start) -> None:
    running = await start()
    await create(running, requests(*"abcdef", tape=LONG))
    await eventually(lambda: running.server.worker.stats().running > 0)
    await stop(running)
    await eventually(lambda: "server/batch_" not in str(asyncio.all_tasks()))


async def test_without_requests_nobody_looks_at_the_store(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(scripted, requests("a"))
    looks: list[int] = []

    async def look(num_items: int) -> list[Any]:
        looks.append(num_items)
        return []

    monkeypatch.setattr(scripted.server.store, "next_items", look)
    await asyncio.sleep(0.3)
    assert looks == []


async def test_an_engine_that_fails_once_costs_a_batch_nothing(scripted: Running) -> None:
    id = await create(scripted, requests(*"abcdef", tape=LONG, max_tokens=300))
    await eventually(lambda: scripted.server.worker.stats().running > 0)
    break_engine(scripted)
    found: Any = await results(scripted, id)
    assert {result["type"] for result in found.values()} == {"succeeded"}
    assert scripted.server.worker.stats().restarts == 1
    assert len({result["message"]["content"][0]["text"] for result in found.values()}) == 1


async def test_a_full_queue_is_waited_for(start: Start) -> None:
    narrow = EngineConfig(dtype="float32", num_pages=1_024, threads=1, max_sequences=1)
    running = await start(engine=narrow, config=ServerConfig(max_queue=0))
    stream = asyncio.create_task(running.stream(ask(LONG, max_tokens=400)))
    await eventually(lambda: running.server.worker.stats().running == 1)
    found = await run(running, requests("a"))
    assert found["a"]["type"] == "succeeded"
    await stream


async def test_on_a_full_disk_the_batch_waits_and_interactive_work_goes_on(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals: list[object] = []

    def full(*args: object) -> bool:
        refusals.append(args)
        raise StoreFull

    with monkeypatch.context() as patched:
        patched.setattr("minimsg.store.batches.finish", full)
        id = await create(scripted, requests("a", "b"))
        await eventually(lambda: len(refusals) >= 2)
        answer: Any = (await scripted.post(ask(PLAIN)))[0]
        assert answer["content"][0]["text"] == TAPES[PLAIN]
    found = await results(scripted, id)
    assert {result["type"] for result in found.values()} == {"succeeded"}


async def test_a_store_that_fails_in_a_way_nobody_knows_is_tried_again(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        broken = asyncio.Event()

        def fail_once(*args: object) -> bool:
            broken.set()
            raise RuntimeError("nobody knows")

        patched.setattr("minimsg.store.batches.finish", fail_once)
        id = await create(scripted, requests("a"))
        await broken.wait()
    assert (await results(scripted, id))["a"]["type"] == "succeeded"


async def test_while_somebody_streams_one_request_is_begun_at_a_time(
    scripted: Running,
) -> None:
    most: list[int] = []
    body = ask(LONG, stream=True)
    async with scripted.session.post(f"{scripted.url}/v1/messages", json=body) as response:
        assert await response.content.readany()
        id = await create(scripted, requests(*"abcdefgh", max_tokens=3))
        while len(await done(scripted, id, 0)) < 8:
            most.append(scripted.server.worker.stats().running)
            await asyncio.sleep(0)
    assert max(most) == 2


async def test_what_runs_already_gives_way_to_a_stream_but_for_one_and_is_computed_later(
    scripted: Running,
) -> None:
    items = requests(*"abcd", tape=LONG, max_tokens=800)
    id = await create(scripted, items)
    await eventually(lambda: scripted.server.worker.stats().running == NUM_AT_ONCE)
    body = ask(LONG, stream=True, max_tokens=400)
    async with scripted.session.post(f"{scripted.url}/v1/messages", json=body) as response:
        await eventually(lambda: scripted.server.worker.stats().running == 2)
        assert len(await done(scripted, id, 0)) == 0
        assert b"message_stop" in await response.read()
    found: Any = await results(scripted, id)
    assert {result["message"]["content"][0]["text"] for result in found.values()} == {
        TAPES[LONG][:800]
    }


async def test_a_batch_is_no_part_of_a_minutes_tokens(start: Start) -> None:
    running = await start(config=ServerConfig(tokens_per_minute=60))
    await run(running, requests("a", "b", tape=LONG, max_tokens=50))
    async with running.session.get(f"{running.url}{ROUTE}") as response:
        assert response.headers["anthropic-ratelimit-tokens-remaining"] == "60"
