"""What the handlers of one server share. Two servers in one process share nothing.

Knows the model, the engine thread and the settings, and whether new work may come in;
the way of a request through them is in `messages.py`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Final

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.constrain.grammars import Grammars
from minimsg.engine.types import GenerationRequest
from minimsg.engine.worker import EngineWorker
from minimsg.errors import ConfigError, NotImplementedHere, Overloaded
from minimsg.hub.store import default_data_dir
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.uploads import Named, Upload, may_name_urls
from minimsg.protocol.diagnosis import Diagnosis
from minimsg.protocol.dialect import Dialect
from minimsg.server.catalog import Catalog, lacking
from minimsg.server.fetch import Fetcher
from minimsg.server.past_prompts import PastPrompts
from minimsg.server.pool import PreparePool
from minimsg.server.prepare import Known, Prepared, Served, Settings, named_urls
from minimsg.server.ratelimit import RateLimits
from minimsg.server.records import Records
from minimsg.server.remembered import Listener, ThinkingMemory
from minimsg.server.signatures import KEY_BYTES, Seal, server_key
from minimsg.server.storage import store_of
from minimsg.server.uploads import read_uploads

# A step computes at most `max_step_tokens`: seconds on a laptop's CPU, not half a minute.
MAX_STEP_S: Final = 30.0


class Server:
    """The served model and the state of serving it."""

    def __init__(self, chat: ChatModel, worker: EngineWorker, config: ServerConfig) -> None:
        """Raises ConfigError."""
        if not (0 < config.ping_interval_s < inf and 0 < config.write_timeout_s < inf):
            raise ConfigError("ping_interval_s and write_timeout_s must be finite and above 0")
        self.chat = chat
        self.worker = worker
        self.config = config
        self.max_context = worker.max_context
        self.lacking = lacking(chat, citations=config.citations)  # of `features.py`
        self.catalog = Catalog(chat.name, config.alias, config.any_model)
        self.rates = RateLimits.of(config)
        self.memory = ThinkingMemory()
        self.past_prompts = PastPrompts()
        self.records = Records(config.trace)
        data_dir = config.data_dir or default_data_dir()
        self._key = server_key(data_dir) if self.thinks else secrets.token_bytes(KEY_BYTES)
        self.store = store_of(config)
        self.fetcher = Fetcher.of(config)
        self.pool = PreparePool(Served(chat, self._settings()))
        self.grammars = Grammars.of(chat)
        self.is_draining = False
        self.num_requests = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def _settings(self) -> Settings:
        default = self.config.default_max_tokens
        return Settings(
            self.catalog,
            self.max_context,
            default,
            self.chat.parsers,
            self.config.min_cache_tokens,
            self.config.citations,
        )

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request for as long as it is being answered."""
        self.num_requests += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.num_requests -= 1
            if self.num_requests == 0:
                self._idle.set()

    async def until_idle(self) -> None:
        """Return once no request is being answered."""
        await self._idle.wait()

    @property
    def is_live(self) -> bool:
        """Whether the engine thread runs and its last step did not hang."""
        return self.worker.is_alive and self.worker.heartbeat_age_s < MAX_STEP_S

    @property
    def is_ready(self) -> bool:
        """Whether a new request would be answered."""
        return self.is_live and not self.is_draining

    @property
    def thinks(self) -> bool:
        """Whether the model can think."""
        return "thinking" not in self.lacking

    def seal(self, tenant: str) -> Seal:
        """What signs the thinking in replies to `tenant`."""
        return Seal.of(tenant, self._key)

    def known(self, tenant: str) -> Known:
        """What preparing a request of `tenant` has to know."""
        config, is_exact = self.config, self.worker.engine.config.deterministic
        is_off = config.no_remember_thinking or config.profile == "strict" or is_exact
        remembers = self.thinks and not is_off
        return Known(self.seal(tenant), self.memory.of(tenant) if remembers else None)

    async def known_of(
        self, tenant: str, body: bytes, fetched: Mapping[str, Upload] | None = None
    ) -> Known:
        """The same for one `body`, with the files that it names and what was `fetched` for it."""
        uploads = await read_uploads(self.store.files, tenant, body)
        return replace(self.known(tenant), uploads=uploads, fetched=fetched or {})

    async def urls_of(self, body: bytes, dialect: Dialect) -> Sequence[Named]:
        """The URLs to `fetch` for `body`; none unless that is allowed. Raises RequestError."""
        if self.fetcher is None or not may_name_urls(body):
            return ()
        return (await self.pool.run(named_urls, body, dialect)).sources

    async def fetch(self, sources: Sequence[Named]) -> Mapping[str, Upload]:
        """What lies at `sources`, by URL. Raises RequestError."""
        return await self.fetcher.fetch(sources) if self.fetcher and sources else {}

    async def close_fetcher(self) -> None:
        """Fetch no more."""
        if self.fetcher is not None:
            await self.fetcher.close()

    def remember(self, tenant: str, prepared: Prepared, listener: Listener) -> None:
        """A reply is complete: keep its thinking for a client that will not send it back."""
        self.memory.touch(tenant, prepared.recalled)
        if prepared.digest is not None and listener.thoughts:
            digest = listener.digest(prepared.digest)
            self.memory.remember(tenant, digest, listener.thoughts)

    def diagnosis(self, tenant: str, prepared: Prepared, message_id: str) -> Diagnosis | None:
        """What has changed since the message that `prepared` asks about; this one is kept, too."""
        if (asking := prepared.asking) is None:
            return None
        ids = prepared.prompt_ids
        num_cached = max((mark.num_tokens for mark in prepared.marks), default=0)
        found = self.past_prompts.diagnose(tenant, asking, ids)
        self.past_prompts.remember(tenant, message_id, asking, ids, num_cached)
        return found

    def check_can_answer(self) -> None:
        """Raise for work that must not begin, before anything of it is read.

        Raises NotImplementedHere, Overloaded, GenerationFailed.
        """
        self.check_can_count()
        self.worker.check_room()

    def check_can_count(self) -> None:
        """The same for work without the engine, which a full queue or a restart does not concern.

        Raises NotImplementedHere, Overloaded.
        """
        if self.chat.template is None:
            raise NotImplementedHere(
                f"The model {self.chat.name} has no chat template: it cannot answer messages."
            )
        if self.is_draining:
            raise Overloaded("The server is shutting down.")

    async def generation(
        self, request_id: str, prepared: Prepared, tenant: str
    ) -> GenerationRequest:
        """`prepared` as the engine takes it. Raises InvalidRequest for a form it cannot hold."""
        hook = await self.grammars.hook(
            prepared.constraint, prepared.tools, prepared.tags, continues=prepared.continues
        )
        return GenerationRequest(
            id=request_id,
            tenant=tenant,
            prompt_ids=prepared.prompt_ids,
            images=prepared.images,
            passages=prepared.citing.spans if prepared.citing else (),
            max_tokens=prepared.max_tokens,
            end_ids=self.chat.end_ids,
            sampling=prepared.sampling,
            hook=hook,
            marks=prepared.marks,
        )


SERVER: Final = web.AppKey("server", Server)
REQUEST_ID: Final = web.RequestKey("request_id", str)
