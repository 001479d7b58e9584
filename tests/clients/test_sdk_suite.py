"""The official Python SDK's own tests, from its sdist, pass against our server.

They check the types of every answer, in strict mode. Left out: the cases named
*_all_params, which send nonsense that a validating server refuses. The ids that they make
up are there in `serve_seeded.py`. Reads: MINIMSG_CLIENT_CACHE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path

import pytest

from minimsg.bench.foreign import quiet_environment
from minimsg.builtin import write_tiny

from . import fetched
from .conftest import Serve

pytestmark = [pytest.mark.client, pytest.mark.timeout(1200)]

SEEDED = Path(__file__).parent / "serve_seeded.py"


@pytest.fixture
def seeded(tmp_path: Path) -> Iterator[str]:
    """The URL of a server that has the ids of the SDK's tests."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    write_tiny(folder)
    command = [sys.executable, str(SEEDED), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_the_sdks_own_tests_of_messages_and_models_pass(
    serve: Serve, cache: Path, tmp_path: Path
) -> None:
    url = serve("tiny", "--any-model", "--data-dir", str(tmp_path / "data")).url
    # Of the 215 in these files; the other 50 are *_all_params.
    assert num_passed(cache, tmp_path, url, "test_messages.py", "test_models.py") == 165


def test_the_sdks_own_tests_of_batches_and_files_pass(
    seeded: str, cache: Path, tmp_path: Path
) -> None:
    assert num_passed(cache, tmp_path, seeded, "test_files.py", "messages/test_batches.py") == 376


def num_passed(cache: Path, tmp_path: Path, url: str, *names: str) -> int:
    """Tests of the files and their beta twins that passed at `url`; AssertionError: one failed."""
    suite = fetched.sdk_suite(cache)
    (sdist,) = suite.glob("anthropic-*/")
    report = tmp_path / "report.xml"
    files = [f"tests/api_resources/{beta}{name}" for beta in ("", "beta/") for name in names]
    done = subprocess.run(
        [
            *(str(suite / "python" / "bin" / "python"), "-m", "pytest", f"--junitxml={report}"),
            *("-o", "addopts=", "-p", "tests._alias_httpx", "-p", "no:cacheprovider", "--tb=short"),
            *("-k", "not all_params", *files),
        ],
        cwd=sdist,
        env=os.environ | quiet_environment() | {"TEST_API_BASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1000,
    )
    assert done.returncode == 0, done.stdout[-8_000:]
    return sum(len(case) == 0 for case in xml.parse(report).iter("testcase"))
