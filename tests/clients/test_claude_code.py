"""The real Claude Code, unmodified, completes `claude -p` against our server.

Its first request is some 49 kB of tools and system text. Models: random weights behind
a real tokenizer, the scripted model for a tool loop, and the trained default model,
whose window is too short for the client's own tools. Reads: MINIMSG_CLIENT_CACHE.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from minimsg import hub
from minimsg.builtin import write_scripted
from minimsg.errors import ModelNotFound

from . import fetched, random_model
from .claude import Claude, Ran
from .conftest import Serve

pytestmark = [pytest.mark.client, pytest.mark.timeout(1_200)]

RED_DOT = (  # a PNG of 8 x 8 pixels
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAA"
    "SUVORK5CYII="
)
WINDOW = 131_072  # tokens, here bytes, of the scripted model: two prompts of 49 kB


@pytest.fixture
def claude(cache: Path, tmp_path: Path) -> Claude:
    home = tmp_path / "home"
    home.mkdir()
    return Claude(fetched.claude_code(cache), home)


def assert_completed(ran: Ran) -> None:
    """The client is content: it had a reply that is no error."""
    assert ran.status == 0, ran.said[-4_000:]
    assert ran.result["is_error"] is False, ran.result
    assert ran.result["subtype"] == "success"


def reading(file: Path) -> str:
    """What a model says to read `file`."""
    call = {"name": "Read", "arguments": {"file_path": str(file)}}
    return f"I look.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"


def test_a_model_with_the_tokenizer_of_qwen3_completes_a_prompt(
    claude: Claude, serve: Serve, test_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "random"
    random_model.write_with_qwen3_tokenizer(folder, test_data / "data" / "qwen3")
    assert_completed(claude.ask(serve(folder, "--any-model").url, "hi"))


def test_a_model_with_a_tokenizer_of_ours_completes_a_prompt(
    claude: Claude, serve: Serve, tmp_path: Path
) -> None:
    folder = tmp_path / "random"
    folder.mkdir()
    random_model.write_with_trained_tokenizer(folder)
    assert_completed(claude.ask(serve(folder, "--any-model").url, "hi"))


def test_a_tool_that_the_model_calls_is_run_and_its_result_comes_back(
    claude: Claude, serve: Serve, tmp_path: Path
) -> None:
    note = claude.folder / "note.txt"
    note.write_text("The word is plum.\n")
    write_scripted(tmp_path / "scripted", [reading(note), "It says plum."], window=WINDOW)
    url = serve(tmp_path / "scripted", "--any-model").url
    ran = claude.ask(url, "What is in note.txt?", "--allowedTools", "Read")
    assert_completed(ran)
    assert [(made["name"], made["input"]) for made in ran.tool_calls] == [
        ("Read", {"file_path": str(note)})
    ]
    assert ["plum" in str(each["content"]) for each in ran.tool_results] == [True]
    assert ran.result["result"] == "It says plum."
    assert ran.result["num_turns"] == 2


@pytest.mark.parametrize(
    "feature", ["system-turns", "context-management", "adaptive-thinking", "effort"]
)
def test_the_client_gets_by_without_a_feature(
    claude: Claude, serve: Serve, tmp_path: Path, feature: str
) -> None:
    write_scripted(tmp_path / "scripted", ["Certainly."], window=WINDOW)
    url = serve(tmp_path / "scripted", "--any-model", "--without", feature).url
    ran = claude.ask(url, "hi")
    assert_completed(ran)
    assert ran.result["result"] == "Certainly."


def test_the_client_goes_on_without_a_picture_that_the_model_cannot_see(
    claude: Claude, serve: Serve, tmp_path: Path
) -> None:
    picture = claude.folder / "red.png"
    picture.write_bytes(base64.b64decode(RED_DOT))
    write_scripted(tmp_path / "scripted", [reading(picture), "It is a picture."], window=WINDOW)
    url = serve(tmp_path / "scripted", "--any-model").url
    ran = claude.ask(url, "What is in red.png?", "--allowedTools", "Read")
    assert_completed(ran)
    assert ran.result["result"] == "It is a picture."


def test_the_client_says_which_model_is_unknown(
    claude: Claude, serve: Serve, tmp_path: Path
) -> None:
    write_scripted(tmp_path / "scripted", window=WINDOW)
    url = serve(tmp_path / "scripted").url
    ran = claude.ask(url, "hi", "--model", "another")
    assert ran.status == 1
    assert ran.result["api_error_status"] == 404
    assert "another" in ran.result["result"]


def test_the_client_counts_its_context(claude: Claude, serve: Serve, tmp_path: Path) -> None:
    write_scripted(tmp_path / "scripted", window=WINDOW)
    url = serve(tmp_path / "scripted", "--any-model").url
    ran = claude.ask(url, "/context")
    assert_completed(ran)
    counted = re.search(r"\*\*Tokens:\*\* ([\d.]+)k", ran.result["result"])
    assert counted is not None, ran.result["result"]
    assert float(counted.group(1)) > 30  # thousands of bytes; its own guess is a quarter of them


@pytest.mark.weights
def test_the_default_model_refuses_the_clients_own_tools_and_answers_with_fewer(
    claude: Claude, serve: Serve
) -> None:
    try:
        hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    url = serve("smollm2", "--any-model").url
    refused = claude.ask(url, "hi")
    assert refused.status == 1
    assert "prompt is too long" in refused.result["result"].lower()
    narrowed = claude.ask(url, "hi", "--bare", "--tools", "Read", "--system-prompt", "Be brief.")
    assert_completed(narrowed)
    assert narrowed.result["result"]
