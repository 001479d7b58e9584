"""Foreign programs run where they can report to nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from minimsg.bench.foreign import quiet, quiet_environment, run, running
from minimsg.errors import ConfigError

PROBE = """
import json, urllib.request
try:
    urllib.request.urlopen("http://192.0.2.1/", timeout=20)
    error = "answered"
except OSError as failure:
    error = str(failure)
print(json.dumps(error))
"""


def test_a_program_that_ignores_every_switch_meets_a_closed_proxy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=os.environ | quiet_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "refused" in json.loads(done.stdout)


def test_the_switches_that_the_libraries_document_are_set() -> None:
    environment = quiet_environment()
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        assert environment[switch] == "1"
    for switch in ("DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"):
        assert environment[switch] == "1"
    assert environment["DO_NOT_TRACK"] == "1"


def test_the_quiet_ends_with_its_block() -> None:
    before = dict(os.environ)
    with quiet():
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        os.environ["LEFT_BEHIND"] = "1"
    assert dict(os.environ) == before


def test_a_program_runs_in_the_quiet_and_says_its_output() -> None:
    script = "import os; print(os.environ['DO_NOT_TRACK'], os.environ['HTTPS_PROXY'])"
    assert run([sys.executable, "-c", script], 30) == "1 http://127.0.0.1:9\n"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "cannot be started: No such file"),
        (["sh", "-c", "echo why not >&2; exit 3"], "ended with 3: why not"),
        (["sleep", "30"], "more than 0.2 s"),
    ],
)
def test_a_program_that_fails_is_named_with_the_reason(command: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        run(command, 0.2 if command[0] == "sleep" else 30)
    assert command[0] in str(raised.value)


def test_a_program_that_listens_ends_with_its_block() -> None:
    with running(["sleep", "60"]) as process:
        assert process.poll() is None
    assert process.returncode == -15


def test_a_program_that_ended_too_early_is_told_in_its_own_words() -> None:
    with (
        pytest.raises(ConfigError, match="ended with 4: no such model"),
        running(["sh", "-c", "echo no such model; exit 4"]) as process,
    ):
        process.wait(30)
