"""The official TypeScript SDK: replies, streams, counts, errors, parsed values, tool loops.

Each test has a script that asks: `ask.mjs`, `rebuild.mjs`, `hold.mjs`. The shapes of
replies are those of the Python SDK's tests. Reads: MINIMSG_CLIENT_CACHE.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minimsg.bench.foreign import quiet_environment
from minimsg.builtin import write_scripted

# Tests have no absolute name.
from ..server.reply_shapes import (  # noqa: TID252
    TITLES,
    body_of,
    is_as_written,
    without_ids,
    write_shapes,
)
from ..server.test_tool_loop import TAPES as LOOP  # noqa: TID252
from . import fetched
from .conftest import Serve

CALL = {"name": "weigh", "arguments": {"thing": "a plum"}}
CALLING = f"I weigh.\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
ANSWER = "It weighs 60 g."

Ask = Callable[..., Any]

pytestmark = [pytest.mark.client, pytest.mark.timeout(900)]


@pytest.fixture
def ask(serve: Serve, cache: Path, tmp_path: Path) -> Ask:
    """`ask(script, write, said)`: what the script prints of the model that `write` fills."""
    packages = fetched.node_packages(cache, fetched.NODE_SDK, fetched.ZOD)

    def run(script: str, write: Callable[[Path], None], said: object = None) -> Any:
        # Node looks for packages beside the script, not in the folder that it runs in.
        shutil.copy(Path(__file__).with_name(script), packages / script)
        write(tmp_path / "scripted")
        done = subprocess.run(
            ["node", str(packages / script), serve(tmp_path / "scripted", "--any-model").url],
            env=os.environ | quiet_environment(),
            input=json.dumps(said),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_typescript_sdk_reads_every_kind_of_answer(ask: Ask) -> None:
    said = ask("ask.mjs", lambda folder: write_scripted(folder, [CALLING, ANSWER]))
    created, streamed = said["created"], said["streamed"]
    assert created["content"] == [{"type": "text", "text": CALLING}]
    assert "".join(said["pieces"]) == CALLING
    assert streamed["content"] == created["content"]
    assert streamed["usage"] == created["usage"]
    assert said["counted"]["input_tokens"] == created["usage"]["input_tokens"]
    assert said["refused"]["status"] == 400
    assert said["refused"]["type"] == "invalid_request_error"
    assert said["refused"]["requestID"].startswith("req_")
    assert said["weighed"] == ["a plum"]
    assert said["looped"]["content"] == [{"type": "text", "text": ANSWER}]


def test_streams_that_the_typescript_sdk_adds_up_are_the_plain_answers(ask: Ask) -> None:
    answers = ask("rebuild.mjs", write_shapes, {title: body_of(title) for title in TITLES})
    assert list(answers) == TITLES
    for title, resources in answers.items():
        assert len(resources) == 2  # stable and beta
        for answer in resources:
            assert is_as_written(answer["plain"], title), answer["plain"]
            streamed = without_ids(answer["streamed"])
            assert streamed.pop("parsed_output") is None  # what the SDK adds
            assert streamed == without_ids(answer["plain"])


def test_the_typescript_sdk_parses_what_is_held_and_runs_tools(ask: Ask) -> None:
    tapes = ['{"city":"Rome","days":[3,-1]}', *LOOP]
    said = ask("hold.mjs", lambda folder: write_scripted(folder, tapes))
    assert said["parsed"] == [{"city": "Rome", "days": [3, -1]}] * 6
    assert len(said["loops"]) == 2  # plain and streamed
    for loop in said["loops"]:
        assert loop["ran"] == ["now UTC", "add 12 30", "now CET"]
        assert loop["last"]["content"] == [{"type": "text", "text": LOOP[2]}]
        assert loop["last"]["stop_reason"] == "end_turn"
