"""Servers that a benchmark starts and ends: ours, and llama.cpp's, each a process of its own.

What they are asked is in `serving.py`.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from minimsg.bench.foreign import running
from minimsg.bench.serving import Served
from minimsg.bench.settings import Shapes, VersusSettings
from minimsg.errors import ConfigError

START_S: Final = 120.0  # for a server to load its model
TEMPLATE_TOKENS: Final = 64  # of a chat template, more than those of the default model


@contextmanager
def our_server(
    folder: Path, settings: VersusSettings, threads: int, *more: str
) -> Iterator[Served]:
    """`minimsg serve` of the model in `folder`, with `more` flags, until the block ends."""
    flags = [*more, "--dtype", settings.dtype, "--threads", str(threads), "--log-level", "warning"]
    if settings.kernel:
        flags += ["--kernel", settings.kernel]
    port = free_port()
    command = [sys.executable, "-P", "-m", "minimsg", "serve", str(folder), "--no-store", *flags]
    with _serving([*command, "--port", str(port)], port) as served:
        yield served


@contextmanager
def llama_server(settings: VersusSettings, shapes: Shapes, threads: int) -> Iterator[Served]:
    """The llama-server of the settings: one that runs, or one that is started with their file.

    Raises ConfigError.
    """
    named = settings.llama_server
    if named is None:
        raise ConfigError("--vs llama-server needs --llama-server, a base URL or a program")
    if named.startswith(("http://", "https://")):
        with closing(Served(named)) as served:
            yield served
        return
    if settings.gguf is None:
        raise ConfigError("to start llama-server, name its file with --gguf")
    streams = max(shapes.batches)
    window = max(*shapes.prefills.values(), shapes.context) + TEMPLATE_TOKENS + shapes.reply_tokens
    shape = {"-m": settings.gguf, "-t": threads, "-np": streams, "-c": streams * window}
    flags = [str(word) for pair in shape.items() for word in pair]
    port = free_port()
    command = [named, *flags, "--host", "127.0.0.1", "--port", str(port)]
    with _serving(command, port) as served:
        yield served


@contextmanager
def _serving(command: list[str], port: int) -> Iterator[Served]:
    """Start a server and wait until it is well."""
    url = f"http://127.0.0.1:{port}"
    opener, deadline = build_opener(ProxyHandler({})), monotonic() + START_S
    with running(command) as process:
        while process.poll() is None:
            try:
                opener.open(f"{url}/health", timeout=5).close()
                break
            except (URLError, OSError):
                if monotonic() > deadline:
                    raise ConfigError(f"{command[0]} was not ready after {START_S:g} s") from None
                sleep(0.1)
        if process.poll() is None:
            with closing(Served(url)) as served:
                yield served


def free_port() -> int:
    """A port of the loopback address that nobody has now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        number: int = listening.getsockname()[1]
        return number
