"""What a server's own project runs in its CI: the command with its files, pytest, two servers."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import minimsg.conformance
from minimsg.cli.conform import EXIT_UNREACHABLE
from minimsg.cli.main import main
from minimsg.misbehave.catalog import MUTANTS
from minimsg.misbehave.proxy import Proxy

from .conftest import Serve, listen

README = Path(minimsg.conformance.__file__).with_name("README.md")
CASES = ("--case", "errors.envelope.p*")
CONFTEST = 'pytest_plugins = ["minimsg.conformance.pytest_plugin"]\n'
TEST = "def test_the_messages_api(messages_case):\n    messages_case()\n"


async def conform(*arguments: str) -> Result:
    """Run the command beside the server, which has this thread."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["conform", *arguments])


async def misbehaving(stack: AsyncExitStack, url: str, name: str) -> str:
    return await listen(stack, Proxy(url, mutant=MUTANTS[name]).runner())


async def test_the_command_of_the_action_writes_its_files(serve: Serve, tmp_path: Path) -> None:
    (line,) = re.findall(r"run: minimsg conform \S+ (.*)", README.read_text("utf-8"))
    flags = [tmp_path / word if "." in word else word for word in line.split()]
    (tmp_path / "known.toml").write_text("known = []\n")
    done = await conform(await serve("scripted"), *map(str, flags), *CASES)
    assert done.exit_code == 0, done.output
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    assert "errors.envelope.path" in (tmp_path / "report.html").read_text("utf-8")


def test_the_action_is_yaml_in_which_each_step_is_a_command_or_an_action() -> None:
    yaml = pytest.importorskip("yaml")
    (text,) = re.findall(r"```yaml\n(jobs:.*?)```", README.read_text("utf-8"), re.S)
    (job,) = yaml.safe_load(text)["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest"
    assert [len({"run", "uses"} & step.keys()) for step in job["steps"]] == [1] * len(job["steps"])


async def test_two_servers_differ_where_one_is_wrong(serve: Serve) -> None:
    url = await serve("scripted")
    async with AsyncExitStack() as stack:
        wrong = await misbehaving(stack, url, "detail")
        assert (await conform(url, "--against", url, *CASES)).output == ""
        seen = await conform(url, "--against", wrong, *CASES)
    assert "errors.envelope.path: type of error: " in seen.output
    assert seen.exit_code == 0


async def test_two_servers_of_one_model_differ_in_why_a_greedy_reply_ends(serve: Serve) -> None:
    url = await serve("scripted")
    cases = ("--case", "message.shape.one-token", "--case", "caching.accepted.hour")
    async with AsyncExitStack() as stack:
        wrong = await misbehaving(stack, url, "always-end-turn")
        assert (await conform(url, "--against", url, *cases)).output == ""
        seen = await conform(url, "--against", wrong, *cases)
        other = await conform(url, "--api-version", "2026-10-21", "--against", wrong, *cases)
    assert 'one-token: stop_reason: "max_tokens" and "end_turn"' in seen.output
    assert "stop_reason" not in other.output  # without a temperature it is the model's own


async def test_pytest_has_a_test_for_each_case_and_fails_with_the_rule(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_api.py").write_text(TEST)
    async with AsyncExitStack() as stack:
        wrong = await misbehaving(stack, await serve("scripted"), "detail")
        code, said = await pytest_at(wrong, tmp_path, "stop.zero", "errors.envelope.path")
    assert code == 1, said
    assert "1 failed, 1 passed" in said
    assert "A failure comes in the envelope" in said
    assert "curl " in said


async def pytest_at(url: str, folder: Path, *cases: str) -> tuple[int | None, str]:
    """The exit code and the words of a project's pytest, with no other plugin."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"),
        *("--rootdir", str(folder), "--messages-url", url, str(folder)),
        *(f"--messages-case={case}" for case in cases),
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def test_a_server_that_accepts_and_says_nothing_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = await conform(url, "--timeout", "0.2", *CASES)
    assert done.exit_code == EXIT_UNREACHABLE
    assert "no complete answer within 0.2 s" in done.output
