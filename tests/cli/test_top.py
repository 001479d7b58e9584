"""`minimsg top` against a server in a process of its own, against none, and against another's."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner, Result

from minimsg.cli.figures import Figures, Rates, rates
from minimsg.cli.main import main
from minimsg.errors import ConfigError

from .process import Serving

SEEN = """\
# TYPE minimsg_requests_running gauge
minimsg_requests_running 3
minimsg_requests_waiting 2
minimsg_pages{state="free"} 50
minimsg_pages{state="cached"} 30
minimsg_pages{state="used"} 20
minimsg_pages_pinned 10
minimsg_prefix_cache_queries_total 200
minimsg_prefix_cache_hits_total 150
minimsg_prompt_tokens_total 200
minimsg_generation_tokens_total 400
minimsg_requests_total{endpoint="/messages",status="200",stop_reason="end_turn"} 4
minimsg_requests_total{endpoint="/messages",status="400",stop_reason="none"} 1
minimsg_preemptions_total 7
minimsg_engine_restarts_total 1
"""


def look_once(url: str, *more: str) -> Result:
    return CliRunner().invoke(main, ["top", "--once", "--url", url, *more])


@contextmanager
def answering(status: int, body: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Something that is asked over HTTP: its URL, and the headers that it was sent."""
    asked: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_one_look_shows_what_a_server_has_done(serving: Serving) -> None:
    body = {"model": "scripted", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    headers = {"content-type": "application/json"}
    data = json.dumps(body).encode()
    request = urllib.request.Request(serving.url + "/v1/messages", data, headers)
    with urllib.request.urlopen(request) as response:
        usage = json.load(response)["usage"]
    shown = look_once(serving.url)
    assert shown.exit_code == 0, shown.output
    assert "0 running, 0 waiting" in shown.output
    prompt, generated = re.findall(r"([\d,]+) (?:prompt|generated)", shown.output)
    assert int(prompt.replace(",", "")) >= usage["input_tokens"]
    assert int(generated.replace(",", "")) >= usage["output_tokens"]


def test_every_figure_has_its_row() -> None:
    with answering(200, SEEN) as (url, _):
        shown = look_once(url).output
    rows = {
        "requests": "3 running, 2 waiting",
        "pages used": "####................ 20 of 100",
        "cached": "######.............. 30 of 100",
        "free": "##########.......... 50 of 100",
        "pinned": "##.................. 10 of 100",
        "prefix hits": "75.0%",
        "so far": "5 requests, 200 prompt and 400 generated tokens",
    }
    for title, text in rows.items():
        assert any(title in line and text in line for line in shown.splitlines()), title
    assert "7 preemptions, 1 restarts" in shown


def test_rates_are_those_between_two_looks() -> None:
    later = SEEN.replace("_total 200", "_total 300").replace("hits_total 150", "hits_total 170")
    later = later.replace('"end_turn"} 4', '"end_turn"} 14').replace("_total 400", "_total 1400")
    before, now = Figures.read(SEEN, 10.0), Figures.read(later, 12.0)
    assert rates(before, now) == Rates(50.0, 500.0, 5.0, 0.2)
    assert rates(now, now) == Rates(0.0, 0.0, 0.0, None)
    assert rates(now, before) == Rates(0.0, 0.0, 0.0, 0.75)  # another process by now


def test_it_looks_again_and_again_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("minimsg.cli.top.time.sleep", sleep)
    with answering(200, SEEN) as (url, asked):
        shown = CliRunner().invoke(main, ["top", "--url", url, "--interval-s", "2"])
    assert (shown.exit_code, sleeps, len(asked)) == (130, [2, 2, 2], 3)
    assert "generated tokens/s" in shown.output


def test_a_key_is_sent_and_one_that_is_wanted_is_asked_for() -> None:
    with answering(200, SEEN) as (url, asked):
        assert look_once(url, "--api-key", "secret").exit_code == 0
        assert look_once(url).exit_code == 0
    assert [headers.get("x-api-key") for headers in asked] == ["secret", None]
    with answering(401, "{}") as (url, _):
        refused = look_once(url)
    assert refused.exit_code == 2
    assert "--api-key" in refused.output


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (404, "", "HTTP 404"),
        (302, "", "HTTP 302"),
        (200, "go_threads 12\n", "no minimsg_"),
        (200, "<html>hello</html>", "Prometheus"),
        (200, "", "no minimsg_"),
    ],
)
def test_another_server_is_told_apart(status: int, body: str, why: str) -> None:
    with answering(status, body) as (url, _):
        shown = look_once(url)
    assert shown.exit_code == 2
    assert why in shown.output
    assert "minimsg server" in shown.output


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://"])
def test_where_nobody_answers_it_says_so_and_what_to_do(url: str) -> None:
    shown = look_once(url)
    assert shown.exit_code == 2
    assert f"no server answers at {url.rstrip('/')}" in shown.output
    assert "minimsg serve" in shown.output


def test_a_figure_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="minimsg_preemptions_total"):
        Figures.read(SEEN.replace("minimsg_preemptions_total 7\n", ""), 0.0)
