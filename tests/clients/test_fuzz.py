"""Requests made up from our own OpenAPI document: every answer is one that it describes.

    pip install -c constraints.txt schemathesis && pytest -m fuzz

Bounded in number and deterministic; MINIMSG_FUZZ_EXAMPLES asks for more.
"""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from minimsg.bench.foreign import quiet_environment

from .conftest import Serve

EXAMPLES = os.environ.get("MINIMSG_FUZZ_EXAMPLES", "300")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("profile", ["compat", "strict"])
def test_no_request_made_from_the_document_breaks_the_server(
    serve: Serve, tmp_path: Path, profile: str
) -> None:
    if find_spec("schemathesis") is None:
        pytest.skip("schemathesis is not installed")
    server = serve("tiny", "--profile", profile, "--any-model", "--max-context", "64")
    command = ["schemathesis", "run", f"{server.url}/openapi.json"]
    done = subprocess.run(
        [
            *command,
            *("--checks", ",".join(CHECKS), "--max-examples", EXAMPLES),
            *("--phases", "examples,coverage,fuzzing", "--generation-deterministic"),
            *("--header", "anthropic-version: 2023-06-01", "--no-color"),
        ],
        cwd=tmp_path,
        env=os.environ | quiet_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert server.process.poll() is None
