"""The official TypeScript SDK: a reply, a stream, a count, an error, a tool loop.

The script that asks is `ask.mjs`. Reads: MINIMSG_CLIENT_CACHE.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from minimsg.bench.foreign import quiet_environment
from minimsg.builtin import write_scripted

from . import fetched
from .conftest import Serve

CALL = {"name": "weigh", "arguments": {"thing": "a plum"}}
CALLING = f"I weigh.\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
ANSWER = "It weighs 60 g."

pytestmark = [pytest.mark.client, pytest.mark.timeout(900)]


def test_the_typescript_sdk_reads_every_kind_of_answer(
    serve: Serve, cache: Path, tmp_path: Path
) -> None:
    packages = fetched.node_packages(cache, fetched.NODE_SDK)
    # Node looks for packages beside the script, not in the folder that it runs in.
    shutil.copy(Path(__file__).with_name("ask.mjs"), packages / "ask.mjs")
    write_scripted(tmp_path / "scripted", [CALLING, ANSWER])
    url = serve(tmp_path / "scripted").url
    done = subprocess.run(
        ["node", str(packages / "ask.mjs"), url],
        env=os.environ | quiet_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
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
