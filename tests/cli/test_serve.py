"""`minimsg serve` as a user meets it: a process, its terminal, and the lines it says to paste."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from minimsg.builtin import DEFAULT_TAPES
from minimsg.cli.checks import port_is_free
from minimsg.cli.serve import curl_command, sdk_snippet, terms
from minimsg.config import ServerConfig
from minimsg.loading import has_bfloat16
from minimsg.server.auth import Keys

from .process import MINIMSG, Serving

REPLY = DEFAULT_TAPES[0][:64]  # a token of the scripted model is a byte


def _block(said: str, begin: str, end: str) -> str:
    """The pasted part: from the line that starts with `begin` up to and with `end`."""
    start = said.index(f"\n{begin}") + 1
    return said[start : said.index(end, start) + len(end)]


def test_the_terminal_tells_what_was_loaded_and_how(serving: Serving) -> None:
    cpu = torch.device("cpu")
    dtype = "bfloat16" if has_bfloat16(cpu) else "float32"  # for its heads there is no code of ours
    for fact in ("scripted", dtype, "cpu", "8192 tokens", "pages"):
        assert fact in serving.said


def test_output_that_is_no_terminal_is_plain(serving: Serving) -> None:
    assert "\x1b" not in serving.said
    assert "\r" not in serving.said


def test_the_curl_line_works_as_it_stands(serving: Serving) -> None:
    command = _block(serving.said, "curl ", "}]}'")
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["content"][0]["text"] == REPLY


def test_the_sdk_snippet_works_as_it_stands(serving: Serving) -> None:
    script = _block(serving.said, "from anthropic", ".text)")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == REPLY + "\n", done.stderr


def test_a_port_in_use_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = subprocess.run(
            [*MINIMSG, "serve", "scripted", "--port", port, "--data-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 2
    assert port in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_another_machine_is_refused_with_the_flag_to_change() -> None:
    check = port_is_free(0, "192.0.2.1")  # TEST-NET-1 (RFC 5737): nobody's
    assert not check.ok
    assert "--host" in check.remedy
    assert "--port" not in check.remedy


def test_a_model_that_nobody_knows_ends_with_what_there_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [*MINIMSG, "serve", "no-such-model", "--port", "0", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "no-such-model" in done.stderr
    assert "smollm2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [["serve", "tiny", "--port", "0"], ["run", "tiny", "?"], ["bench", "--vs=transformers"]],
)
def test_without_torch_a_command_says_what_adds_it(command: list[str], tmp_path: Path) -> None:
    script = "import sys; sys.modules['torch'] = None; " + MINIMSG[-1]
    done = subprocess.run(
        [sys.executable, "-c", script, *command, "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "pip install 'minimsg[engine]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "remedies"),
    [
        (["--host", "0.0.0.0"], ["--keys-file", "MINIMSG_API_KEYS", "--insecure"]),
        (["--keys-file", "no-such-file.json"], ["no-such-file.json"]),
        (["--allow-host", "http://box"], ["--allow-host", "host name"]),
    ],
)
def test_who_may_call_is_settled_before_anything_is_loaded(
    arguments: list[str], remedies: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [*MINIMSG, "serve", "scripted", "--port=0", f"--data-dir={tmp_path}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert all(remedy in done.stderr for remedy in remedies)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_server_does_not_get_the_folder_of_the_first(serving: Serving) -> None:
    command = serving.process.args
    assert isinstance(command, list)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert all(word in done.stderr for word in (str(command[-1]), "--data-dir", "--no-store"))
    assert "Traceback" not in done.stderr
    assert done.stdout.count("\n") == 1  # the version; nothing was loaded


def test_the_terminal_tells_the_terms_and_no_key(serving: Serving) -> None:
    assert "profile compat; no API keys: anyone may ask\n" in serving.said
    config = ServerConfig(
        profile="strict",
        alias=("claude-*", "gpt-?"),
        without=("thinking",),
        requests_per_minute=60,
        tokens_per_minute=10_000,
    )
    keys = Keys([("bob", "sk-1"), ("alice", "sk-2"), ("bob", "sk-3")])
    assert terms(config, keys) == (
        "profile strict; keys of alice, bob; answers to claude-*, gpt-? too; without thinking; "
        "60 requests a minute; 10,000 tokens a minute"
    )
    assert "any model name" in terms(ServerConfig(any_model=True, alias=("x",)), Keys())


def test_with_keys_what_is_pasted_has_a_place_for_one() -> None:
    assert "-H 'x-api-key: YOUR-KEY' " in curl_command("http://x", "m", has_keys=True)
    assert 'api_key="YOUR-KEY"' in sdk_snippet("http://x", "m", has_keys=True)


@pytest.mark.parametrize("model", ["smollm2", "it's", 'a"b', "Qwen/Qwen3-0.6B"])
def test_a_model_name_with_quotes_is_still_one_that_can_be_pasted(model: str) -> None:
    echo = "curl() { printf '%s' \"${@: -1}\"; }\n"
    done = subprocess.run(
        ["bash", "-c", echo + curl_command("http://127.0.0.1:1", model)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["model"] == model
    compile(sdk_snippet("http://127.0.0.1:1", model), "snippet", "exec")
