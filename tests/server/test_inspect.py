"""The page and what it asks the server: who may see what, and that looking on hurts nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from minimsg.config import ServerConfig
from minimsg.engine import pause
from minimsg.engine.worker import EngineWorker
from minimsg.inspector.files import page_files
from minimsg.protocol.sse import Decoder
from minimsg.server.inspect import MAX_VIEWERS

from .conftest import ENGINE, SERVING, Start
from .running import LONG, PLAIN, Running, ask, eventually

ALICE, BOB = {"x-api-key": "sk-alice"}, {"x-api-key": "sk-bob"}
SECRET = "a word that only alice has said"


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    """Two tenants."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"alice": "sk-alice", "bob": "sk-bob"}))
    return ServerConfig(keys_file=keys)


@asynccontextmanager
async def talking(running: Running, headers: Mapping[str, str] = {}) -> AsyncIterator[str]:
    """Somebody's reply that goes on for long; the id of the request."""
    body = ask(LONG, stream=True, system=SECRET)
    async with running.session.post(
        running.url + "/v1/messages", json=body, headers=headers
    ) as response:
        assert response.status == 200, await response.text()
        await eventually(lambda: running.server.worker.stats().running > 0)
        yield response.headers["request-id"]


async def look(
    running: Running, headers: Mapping[str, str] = {}, order: str = "", status: int = 200
) -> dict[str, Any]:
    """The state of the engine, after an order if there is one."""
    method, path = ("POST", f"/minimsg/engine/{order}") if order else ("GET", "/minimsg/engine")
    async with running.session.request(method, running.url + path, headers=headers) as response:
        assert response.status == status, await response.text()
        value: dict[str, Any] = await response.json()
        return value


async def test_the_page_is_its_files_and_lets_no_string_become_markup(scripted: Running) -> None:
    for path, name in (
        ("", "index.html"),
        ("/main.js", "main.js"),
        ("/vendor/htm.js", "vendor/htm.js"),
    ):
        async with scripted.session.get(f"{scripted.url}/inspect{path}") as response:
            assert await response.read() == page_files()[name]
            policy = response.headers["content-security-policy"]
            assert response.headers["x-content-type-options"] == "nosniff"
        assert "unsafe" not in policy
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(
            policy.split("; ")
        )
        assert "require-trusted-types-for 'script'" in policy


@pytest.mark.parametrize("name", ["show.py", "__init__.py", "../config.py", "vendor", "x.js"])
async def test_nothing_but_the_page_is_served_there(scripted: Running, name: str) -> None:
    path = name.replace("../", "..%2f")
    async with scripted.session.get(f"{scripted.url}/inspect/{path}") as response:
        assert response.status == 404


async def test_a_viewer_sees_the_pages_and_rows_of_its_own_requests(scripted: Running) -> None:
    await look(scripted)  # from now on steps are noted
    async with talking(scripted) as id:
        await eventually(lambda: scripted.server.worker.stats().used_pages > 2)
        await asyncio.sleep(0.05)
        state = await look(scripted)
    (sequence,) = state["sequences"]
    assert (sequence["id"], sequence["state"]) == (id, "running")
    place = state["holders"].index(id)
    assert state["pages"].count(place) == sequence["num_pages"] > 0
    rows = [row for step in state["steps"] for row in step["rows"]]
    assert {row["id"] for row in rows} == {id}
    assert all(a["stop"] == b["start"] for a, b in pairwise(rows))


async def test_of_others_a_viewer_learns_only_how_many_there_are(
    start: Start, config: ServerConfig
) -> None:
    running = await start(config=config)
    await look(running, BOB)
    async with talking(running, ALICE) as id:
        await eventually(lambda: running.server.worker.stats().used_pages > 2)
        seen = await look(running, BOB)
        own = await look(running, ALICE)
    assert id in json.dumps(own)
    assert id not in json.dumps(seen)
    assert SECRET not in json.dumps([seen, own])
    assert (seen["sequences"], seen["others"]) == ([], {"running": 1, "waiting": 0})
    assert seen["pages"].count(seen["holders"].index("others")) > 0


async def test_a_live_view_goes_on_for_as_long_as_there_is_news(scripted: Running) -> None:
    decoder, numbers = Decoder(), list[int]()
    async with (
        scripted.session.get(scripted.url + "/minimsg/engine/live") as response,
        talking(scripted),
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        while len(numbers) < 20:
            for frame in decoder.push(await response.content.readany()):
                numbers += [step["number"] for step in json.loads(frame.data)["steps"]]
    assert numbers == sorted(set(numbers))  # each step is told once


async def test_live_views_are_few_and_one_that_ends_makes_room(scripted: Running) -> None:
    url = scripted.url + "/minimsg/engine/live"
    open_views = [await scripted.session.get(url) for _ in range(MAX_VIEWERS)]
    async with scripted.session.get(url) as response:
        assert response.status == 429
    open_views.pop().close()
    while (view := await scripted.session.get(url)).status == 429:  # until the server has noticed
        view.close()
        await asyncio.sleep(0.01)
    assert view.status == 200
    open_views.append(view)
    for view in open_views:
        view.close()


async def test_a_paused_engine_steps_once_for_each_order_and_then_goes_on(
    scripted: Running,
) -> None:
    async with talking(scripted) as id:
        before = await look(scripted, order="pause")
        assert before["paused"]
        assert (await look(scripted))["num_steps"] == before["num_steps"]
        assert scripted.server.is_live  # whoever watches the process does not take it for dead
        after = await look(scripted, order="step")
        assert after["num_steps"] == before["num_steps"] + 1
        assert after["sequences"][0]["id"] == id
        assert not (await look(scripted, order="resume"))["paused"]
        await eventually(lambda: scripted.server.worker.engine.num_steps > after["num_steps"] + 5)


async def test_steps_that_were_asked_for_while_nothing_ran_are_not_saved_up(
    scripted: Running,
) -> None:
    await look(scripted, order="pause")
    for _ in range(3):
        before = await look(scripted, order="step")
    coming = asyncio.create_task(scripted.post(ask(PLAIN)))
    await eventually(lambda: scripted.server.worker.stats().waiting > 0)
    after = await look(scripted, order="step")
    assert after["num_steps"] == before["num_steps"] + 1
    await look(scripted, order="resume")
    await coming


async def test_a_pause_that_nobody_renews_ends_by_itself(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pause, "MAX_HOLD_S", 0.3)
    async with talking(scripted):
        state = await look(scripted, order="pause")
        assert state["paused"]
        engine = scripted.server.worker.engine
        await eventually(lambda: engine.num_steps > state["num_steps"] + 5)


async def test_a_server_that_is_told_to_end_does_not_stay_paused(start: Start) -> None:
    running = await start()
    async with talking(running):
        await look(running, order="pause")
        await asyncio.to_thread(running.server.worker.stop)
    assert running.server.worker.is_over


async def test_pausing_needs_leave_where_others_may_ask(start: Start, config: ServerConfig) -> None:
    closed = await start(config=config)
    for order in ("pause", "step", "resume"):
        await look(closed, ALICE, order, status=403)
    assert not (await look(closed, ALICE))["can_control"]
    opened = await start(config=replace(config, inspect_control=True))
    assert (await look(opened, ALICE, "pause"))["paused"]
    await look(opened, ALICE, "resume")


async def test_what_came_of_checked_steps_is_there_for_whoever_may_look(start: Start) -> None:
    unchecked = await start("tiny")
    assert (await look(unchecked))["checks"] is None
    running = await start("tiny", engine=replace(ENGINE, check_kernels=1))
    assert (await look(running))["checks"] is None
    await running.post(ask(0, model="tiny", max_tokens=4))
    checks = (await look(running))["checks"]
    assert checks["num_steps"] == 4
    assert len(checks["latest"]) == 2  # layers
    assert max(checks["latest"]) <= max(checks["worst"]) < 1e-5


async def logits(running: Running, headers: Mapping[str, str], body: object) -> tuple[int, Any]:
    """Status and answer to a question about a token."""
    url = running.url + "/minimsg/logits"
    async with running.session.post(url, json=body, headers=headers) as response:
        return response.status, await response.json()


async def test_a_record_is_looked_into_by_its_tenant_only(
    start: Start, config: ServerConfig
) -> None:
    running = await start("tiny", config=replace(config, trace=2))
    body = {"model": "tiny", "max_tokens": 6, "messages": [{"role": "user", "content": "hello"}]}
    async with running.session.post(
        running.url + "/v1/messages", json=body, headers=ALICE
    ) as answer:
        id = answer.headers["request-id"]
    async with running.session.get(f"{running.url}/minimsg/traces/{id}", headers=ALICE) as answer:
        trace = await answer.json()
    status, found = await logits(running, ALICE, {"trace": id, "token": 3})
    assert status == 200
    # Computed once more it is what was drawn from: an oracle that went another way.
    known = trace["tokens"][3]["top"]
    assert [row[0] for row in found["top"][: len(known)]] == [row[0] for row in known]
    # The same sums in float32, in another order.
    assert found["top"][0][2] == pytest.approx(known[0][2], abs=1e-4)
    assert (await logits(running, BOB, {"trace": id, "token": 3}))[0] == 404
    assert (await logits(running, ALICE, {"trace": id, "token": 6}))[0] == 400
    assert (await logits(running, ALICE, {"trace": id, "token": -1}))[0] == 400
    assert (await logits(running, ALICE, {"trace": id}))[0] == 400
    await running.until_free()


async def test_attention_and_guesses_are_of_the_place_that_was_asked_for(start: Start) -> None:
    running = await start("tiny", config=replace(SERVING, trace=1))
    body = {"model": "tiny", "max_tokens": 4, "messages": [{"role": "user", "content": "hello"}]}
    _, answer = await running.post(body)
    asked = {"trace": answer.headers["request-id"], "position": 5}
    url = running.url + "/minimsg/lens"
    async with running.session.post(url, json={**asked, "what": "attention", "layer": 1}) as got:
        found = await got.json()
    for head in found["heads"]:
        assert len(head) == 6  # what is before it, and itself
        assert sum(head) == pytest.approx(1000, abs=3)  # six, each rounded by half at most
    async with running.session.post(url, json={**asked, "what": "logit_lens"}) as got:
        layers = (await got.json())["layers"]
    assert [each["layer"] for each in layers] == list(range(found["num_layers"]))
    async with running.session.post(url, json={**asked, "what": "attention", "layer": 99}) as got:
        assert got.status == 400


async def test_a_cited_reply_is_looked_into_before_its_passages(start: Start) -> None:
    running = await start("tiny", config=replace(SERVING, trace=1, citations="attention"))
    source = {"type": "text", "media_type": "text/plain", "data": "The mill was built in 1871."}
    document = {"type": "document", "source": source, "citations": {"enabled": True}}
    turns = [{"role": "user", "content": [document, {"type": "text", "text": "When?"}]}]
    _, answer = await running.post({"model": "tiny", "max_tokens": 2, "messages": turns})
    asked = {"trace": answer.headers["request-id"], "what": "attention", "position": 5}
    found, _ = await running.post(asked, "/minimsg/lens")
    heads: Any = found["heads"]
    assert [len(head) for head in heads] == [6] * 4


async def test_a_question_that_the_end_of_the_server_cuts_off_may_be_asked_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start("tiny", config=replace(SERVING, trace=1))
    body = {"model": "tiny", "max_tokens": 2, "messages": [{"role": "user", "content": "hello"}]}
    _, answer = await running.post(body)
    worker = running.server.worker
    await look(running, order="pause")
    monkeypatch.setattr(EngineWorker, "pause_left_s", 0.0)  # as if it came a moment later
    asked = {"trace": answer.headers["request-id"], "what": "logit_lens", "position": 5}
    asking = asyncio.create_task(running.post(asked, "/minimsg/lens", status=529))
    await eventually(lambda: worker.stats().waiting > 0)
    await asyncio.to_thread(worker.stop)
    await asking


async def test_a_model_without_layers_says_so(start: Start) -> None:
    running = await start(config=replace(SERVING, trace=1))
    _, answer = await running.post(ask(0))
    body = {"trace": answer.headers["request-id"], "token": 0}
    status, found = await logits(running, {}, body)
    assert status == 400
    assert "no layers" in found["error"]["message"]
