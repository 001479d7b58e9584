"""The official Python SDK's own tests, from its sdist, pass against our server.

They check the types of every answer, in strict mode. Left out: the cases named
*_all_params, which send nonsense that a validating server refuses, and the routes of
message batches, which are not served yet. Reads: MINIMSG_CLIENT_CACHE.
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from minimsg.bench.foreign import quiet_environment

from . import fetched
from .conftest import Serve

pytestmark = [pytest.mark.client, pytest.mark.timeout(1200)]

FILES = ("test_messages.py", "test_models.py", "beta/test_messages.py", "beta/test_models.py")
NUM_CASES = 165  # of the 215 in these files; the other 50 are *_all_params


def test_the_sdks_own_tests_of_messages_and_models_pass(
    serve: Serve, cache: Path, tmp_path: Path
) -> None:
    suite = fetched.sdk_suite(cache)
    (sdist,) = suite.glob("anthropic-*/")
    url = serve("tiny", "--any-model", "--data-dir", str(tmp_path / "data")).url
    report = tmp_path / "report.xml"
    done = subprocess.run(
        [
            *(str(suite / "python" / "bin" / "python"), "-m", "pytest", f"--junitxml={report}"),
            *("-o", "addopts=", "-p", "tests._alias_httpx", "-p", "no:cacheprovider", "--tb=short"),
            *("-k", "not all_params", *(f"tests/api_resources/{file}" for file in FILES)),
        ],
        cwd=sdist,
        env=os.environ | quiet_environment() | {"TEST_API_BASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1000,
    )
    assert done.returncode == 0, done.stdout[-8_000:]
    assert num_passed(report) == NUM_CASES, done.stdout[-2_000:]


def num_passed(report: Path) -> int:
    """Tests that ran and passed, by pytest's own report."""
    return sum(len(case) == 0 for case in xml.parse(report).iter("testcase"))
