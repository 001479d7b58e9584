"""Ask a model in this process: the path of a request, without HTTP.

`Asker` is the synchronous face for a terminal. What it calls is what the handler of
POST /v1/messages calls: `prepare_message`, `Server.generation`, `reply`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from time import monotonic, perf_counter

from minimsg.bench.sample import JsonObject, Sample, SampleBuilder
from minimsg.cli.startup import check_settings, fetch
from minimsg.config import EngineConfig, ServerConfig
from minimsg.server.auth import LOCAL
from minimsg.server.dialect import own_dialect
from minimsg.server.loading import load_model
from minimsg.server.messages import reply
from minimsg.server.prepare import prepare_message
from minimsg.server.recording import Recording
from minimsg.server.state import Server
from minimsg.server.tracing import trace_of
from minimsg.trace import Trace


class Asker:
    """A loaded model and the event loop that its replies run on."""

    def __init__(self, server: Server, runner: asyncio.Runner) -> None:
        self.server = server
        self.model = server.chat.name
        self._runner = runner

    @classmethod
    @contextmanager
    def open(
        cls, name: str, data_dir: Path | None, config: EngineConfig, *, is_traced: bool = False
    ) -> Iterator[Asker]:
        """Load the model `name` and start its engine; both end with the block."""
        check_settings(config)
        folder = fetch(name, data_dir)
        loaded = load_model(name, folder, config, max_queue=1)
        server = Server(loaded.chat, loaded.worker, ServerConfig(trace=int(is_traced)))
        loaded.worker.start()
        try:
            with asyncio.Runner() as runner:
                try:
                    yield cls(server, runner)
                finally:
                    runner.run(server.pool.close())
        finally:
            loaded.worker.stop()

    def ask(self, body: JsonObject, show: Callable[[str], None]) -> Sample:
        """Stream the reply to a Messages request into `show`.

        Raises RequestError, GenerationFailed, and KeyboardInterrupt after Ctrl-C has
        ended the reply.
        """
        return self._runner.run(self._ask(body, show))

    def trace(self) -> Trace | None:
        """The record of the latest reply, if replies are traced."""
        recordings = self.server.records.of(LOCAL)
        return self._runner.run(trace_of(self.server, recordings[0])) if recordings else None

    async def _ask(self, body: JsonObject, show: Callable[[str], None]) -> Sample:
        self.server.check_can_answer()
        start, arrived = perf_counter(), monotonic()
        sample = SampleBuilder()
        encoded, dialect = json.dumps(body).encode(), own_dialect(self.server)
        known = self.server.known(LOCAL)
        prepared = await self.server.pool.run(prepare_message, encoded, dialect, known)
        generation = await self.server.generation(f"run_{secrets.token_hex(8)}", prepared, LOCAL)
        recording = None
        if (records := self.server.records).traces_all:
            recording = Recording(records, encoded, dialect, known, prepared, generation, arrived)
            generation = recording.generation
        tokens = await self.server.worker.submit(generation)
        replying = reply(self.server, tokens, generation, prepared, recording=recording)
        async with tokens, aclosing(replying) as events:
            async for event in events:
                sample.push(event, perf_counter() - start)
                if event["type"] == "content_block_delta":
                    delta = event["delta"]
                    if delta["type"] == "text_delta":
                        show(delta["text"])
        return sample.sample()
