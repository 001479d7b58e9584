"""What is served, is it up, and what answers at the root."""

from __future__ import annotations

from typing import Any

import pytest

from minimsg.engine.worker import EngineWorker

from .running import Running


async def get(running: Running, path: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
    async with running.session.request(method, running.url + path) as response:
        assert response.headers["request-id"].startswith("req_01")
        return response.status, {} if method == "HEAD" else await response.json()


@pytest.mark.parametrize("prefix", ["/v1", ""])
async def test_the_served_model_is_listed_and_found(tiny: Running, prefix: str) -> None:
    status, listed = await get(tiny, f"{prefix}/models?limit=1000&beta=true")
    assert status == 200
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("tiny", "tiny", False)
    status, found = await get(tiny, f"{prefix}/models/tiny")
    assert (status, [found]) == (200, listed["data"])
    assert found["max_input_tokens"] == tiny.server.max_context


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("after_id=tiny", []),
        ("before_id=tiny", []),
        ("lifecycle[]=deprecated", []),
        ("lifecycle%5B%5D=retired&lifecycle%5B%5D=active", ["tiny"]),
        ("lifecycle%5B%5D=deprecated&lifecycle%5B%5D=retired", []),
        ("lifecycle=retired", ["tiny"]),  # without brackets it is another parameter
        ("unknown=1", ["tiny"]),
    ],
)
async def test_pages_and_filters_of_models(tiny: Running, query: str, ids: list[str]) -> None:
    status, listed = await get(tiny, f"/v1/models?{query}")
    assert (status, [model["id"] for model in listed["data"]]) == (200, ids)


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=1001", "limit=x", "limit=", "after_id=unknown", "before_id="),
        *("after_id=tiny&before_id=tiny", "lifecycle[]=old", "lifecycle[]="),
        "&".join(["lifecycle[]=active"] * 4),
    ],
)
async def test_a_page_that_cannot_be_is_400(tiny: Running, query: str) -> None:
    status, answer = await get(tiny, f"/v1/models?{query}")
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    "path", ["/", "/v1/models", "/v1/models/tiny", "/health", "/health/live", "/health/ready"]
)
async def test_a_probe_with_head_is_answered(tiny: Running, path: str) -> None:
    assert (await get(tiny, path, "HEAD"))[0] == 200


async def test_the_root_says_what_answers_here(tiny: Running) -> None:
    status, description = await get(tiny, "/")
    assert status == 200
    assert (description["name"], description["model"]) == ("minimsg", "tiny")
    assert "POST /v1/messages" in description["routes"]


async def test_a_healthy_server_says_so_with_figures(tiny: Running) -> None:
    status, state = await get(tiny, "/health")
    assert status == 200
    assert (state["live"], state["ready"]) == (True, True)
    assert state["engine"]["free_pages"] == state["engine"]["num_pages"]


async def test_a_server_that_drains_is_live_and_not_ready(tiny: Running) -> None:
    tiny.server.is_draining = True
    assert (await get(tiny, "/health/live"))[0] == 200
    assert (await get(tiny, "/health/ready"))[0] == 503
    assert (await get(tiny, "/health"))[0] == 503


@pytest.mark.parametrize(("name", "value"), [("is_alive", False), ("heartbeat_age_s", 31.0)])
async def test_a_dead_or_hanging_engine_is_never_200(
    tiny: Running, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(EngineWorker, name, property(lambda self: value))
    for path in ("/health", "/health/live", "/health/ready"):
        assert (await get(tiny, path))[0] == 503
