"""Foreign programs run where they can report to nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from minimsg.bench.foreign import quiet, quiet_environment

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
