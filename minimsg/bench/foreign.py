"""Other people's programs and libraries beside ours: how they are started, in what environment.

A benchmark compares and a test of a client asks our server; neither reports: telemetry
and look-ups are switched off by the switches that the programs document, and what ignores
them meets a proxy that is nobody. Set it before the import of the library; libraries read
it once. A program that ends in time is `run`, one that listens is `running`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile

from minimsg.errors import ConfigError

# Port 9 is "discard" (RFC 863); nothing listens there, so a connection is refused at once.
CLOSED = "http://127.0.0.1:9"
LAST_WORDS = 400  # characters of what a program said, shown when it fails
FAREWELL_S = 10  # for a program to end when it is told to


def quiet_environment() -> dict[str, str]:
    """Variables to add to a foreign program's environment."""
    switches = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    proxies = {
        name: CLOSED
        for lower in ("http_proxy", "https_proxy", "all_proxy")
        for name in (lower, lower.upper())
    }
    return switches | proxies | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


@contextmanager
def quiet() -> Iterator[None]:
    """This process with the quiet environment, and with its own again afterwards."""
    before = dict(os.environ)
    os.environ.update(quiet_environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(command: Sequence[str], timeout_s: float) -> str:
    """What a program writes to its standard output. Raises ConfigError unless it ends well."""
    try:
        done = subprocess.run(
            command,
            env=os.environ | quiet_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{command[0]} took more than {timeout_s:g} s") from error
    if done.returncode:
        raise ConfigError(f"{command[0]} ended with {done.returncode}: {_end(done.stderr)}")
    return done.stdout


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program for as long as the block lasts; it is told to end, then made to.

    Raises ConfigError if it cannot be started, or if it has ended with an error meanwhile.
    """
    with TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command,
                env=os.environ | quiet_environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise ConfigError(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            yield process
        finally:
            has_ended = process.poll() is not None
            _end_process(process)
            said.seek(0)
            words = said.read().decode(errors="replace")
        if has_ended:
            raise ConfigError(f"{command[0]} ended with {process.returncode}: {_end(words)}")


def _end_process(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)  # nothing happens if it is over
    try:
        process.wait(FAREWELL_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end(words: str) -> str:
    return words.strip()[-LAST_WORDS:]
