"""The engine's thread and its asyncio face: the one place where the two meet.

Down: a request goes into the engine's queue at once, under its lock; orders (cancel, stop)
go through a queue of their own, which the thread reads between two steps and sleeps on when
there is nothing to do. Up: what a step said, in one call into
each event loop, from there into one queue a request. Knows requests and loops; nothing of
HTTP. The heart is `engine.py`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Final

from minimsg.engine.types import (
    CacheCounts,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    Token,
)
from minimsg.errors import GenerationFailed, InvalidRequest, Overloaded

if TYPE_CHECKING:  # a server can be read, and its routes listed, where torch is not installed
    from minimsg.engine.engine import Engine

logger = logging.getLogger("minimsg")

RETRY: Final = {"retry-after": "2"}  # seconds; of many replies one has ended by then
HANG_S: Final = 10.0  # how long `stop` waits for a step that does not return


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine in numbers, as of its latest step."""

    num_pages: int
    free_pages: int
    cached_pages: int  # not in use, and given away when others are needed
    pinned_pages: int  # kept by cache_control, in use or not
    running: int
    waiting: int
    steps: int
    preemptions: int
    prefix_queries: int  # prompt tokens that were looked up in the cache,
    prefix_hits: int  # and those that did not have to be computed

    @property
    def used_pages(self) -> int:
        """Pages that hold what runs or is about to."""
        return self.num_pages - self.free_pages - self.cached_pages


@dataclass(frozen=True, slots=True)
class _Channel:
    """Where the outputs of one request go. The thread's end; the other is a `TokenStream`."""

    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[Output]


class EngineWorker:
    """Runs an engine in its own thread for any number of event loops."""

    def __init__(self, engine: Engine, max_queue: int) -> None:
        """At most `max_queue` requests wait beside those that the engine can run at once."""
        self.engine = engine
        self.max_open = max_queue + engine.config.max_sequences
        # A SimpleQueue: it may be put to by a garbage collected stream in the midst of anything.
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()  # guards the next three
        self._channels: dict[str, _Channel] = {}  # of the requests whose `Finish` is not said
        self._is_stopping = False
        self._death: str | None = None  # of the thread: its cause
        self._stop_at: float | None = None
        self._num_steps = 0
        self._beat, self._is_idle = monotonic(), True
        self._thread = threading.Thread(target=self._run, name="minimsg-engine", daemon=True)

    @property
    def max_context(self) -> int:
        """The window in tokens, as memory left it."""
        return self.engine.max_context

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs and takes requests; streams learn of its end no earlier."""
        return self._thread.is_alive() and self._death is None

    @property
    def heartbeat_age_s(self) -> float:
        """Seconds since the thread's last turn; 0 while it waits for work."""
        return 0.0 if self._is_idle else monotonic() - self._beat

    def stats(self) -> EngineStats:
        """The engine's figures, from any thread."""
        pool, cache, scheduler = self.engine.pool, self.engine.cache, self.engine.scheduler
        running = len(scheduler.running)
        return EngineStats(
            num_pages=pool.num_pages,
            free_pages=pool.num_free,
            cached_pages=pool.num_cached,
            pinned_pages=cache.index.num_pinned,
            running=running,
            waiting=max(0, len(self._channels) - running),
            steps=self._num_steps,
            preemptions=scheduler.num_preemptions,
            prefix_queries=cache.num_queried,
            prefix_hits=cache.num_hits,
        )

    def start(self) -> None:
        """Start the thread; once."""
        self._thread.start()

    def stop(self, *, drain_s: float = 0.0) -> None:
        """Take no more requests, give those in work `drain_s` to end, cancel the rest, and wait.

        Blocks, not for the event loops that read the streams. May be called again to make
        the time shorter.
        """
        with self._lock:
            self._is_stopping = True
        self._orders.put(partial(self._stop_by, monotonic() + drain_s))
        if self._thread.is_alive():
            self._thread.join(drain_s + HANG_S)

    async def submit(self, request: GenerationRequest) -> TokenStream:
        """Hand a request to the engine; its tokens arrive in the running event loop.

        What the cache has of its prompt is known and held at once, whatever step is running.
        Raises `InvalidRequest`, `Overloaded` when too many wait or the worker is stopping,
        and `GenerationFailed` when its thread has died.
        """
        self.engine.check(request)
        channel = _Channel(asyncio.get_running_loop(), asyncio.Queue())
        with self._lock:
            self.check_room()
            if request.id in self._channels:
                raise InvalidRequest("", f"request {request.id!r} is already running")
            counts = self.engine.add(request)
            self._channels[request.id] = channel
            self._orders.put(_wake)
        return TokenStream(request.id, channel.queue, self.cancel, counts)

    def cancel(self, request_id: str) -> None:
        """End a request within one step: from any thread, in any state, once or twice."""
        self._orders.put(partial(self.engine.cancel, request_id))

    def check_room(self) -> None:
        """Raise if one more request cannot be taken: `Overloaded`, `GenerationFailed`."""
        if self._is_stopping:
            raise Overloaded("The server is shutting down.", headers=RETRY)
        if self._death is not None:
            raise GenerationFailed(self._death)
        if len(self._channels) >= self.max_open:
            why = f"Overloaded: {len(self._channels)} requests are running or waiting."
            raise Overloaded(why, headers=RETRY)

    # The rest runs in the thread.

    def _run(self) -> None:
        """Turn until told to stop; whatever happens, no stream is left without its end."""
        error = "the engine has stopped"
        try:
            while self._stop_at is None or self.engine.has_work:
                self._turn()
        except Exception as failure:
            logger.critical("the engine thread has died", exc_info=True)
            error = f"{type(failure).__name__}: {failure}"
        finally:
            self._close(error)

    def _turn(self) -> None:
        """Orders, a step, its outputs."""
        self._take_orders()
        if self._stop_at is not None and monotonic() >= self._stop_at:
            for request_id in list(self._channels):
                self.engine.cancel(request_id)
        if self.engine.has_work:
            outputs = self.engine.step()
            self._num_steps += 1
            self._publish(outputs)

    def _take_orders(self) -> None:
        """Do what was ordered since the last step; sleep if there is nothing else to do."""
        self._beat = monotonic()
        if not self.engine.has_work:
            self._is_idle = True
            order = self._orders.get()
            self._beat, self._is_idle = monotonic(), False
            order()
        while not self._orders.empty():  # nobody else takes from it
            self._orders.get()()

    def _stop_by(self, deadline: float) -> None:
        self._stop_at = min(deadline, self._stop_at or deadline)

    def _publish(self, outputs: list[Output]) -> None:
        """Hand outputs to their event loops, in one call each."""
        posts: dict[asyncio.AbstractEventLoop, list[tuple[_Channel, Output]]] = {}
        for output in outputs:
            channel = self._channels[output.request_id]
            posts.setdefault(channel.loop, []).append((channel, output))
            if isinstance(output, Finish):
                with self._lock:
                    del self._channels[output.request_id]
        for loop, post in posts.items():
            try:
                loop.call_soon_threadsafe(_deliver, post)
            except RuntimeError:  # the loop is closed: nobody will read these
                for _, output in post:
                    self.engine.cancel(output.request_id)

    def _close(self, error: str) -> None:
        """Take no more requests, and tell those that are open why."""
        with self._lock:
            self._death = error
            request_ids = list(self._channels)
        self._publish([Finish(each, FinishReason.ERROR, error) for each in request_ids])


def _wake() -> None:
    """The order that has the thread look for work."""


def _deliver(post: list[tuple[_Channel, Output]]) -> None:
    """In the event loop: each output to the queue of its request."""
    for channel, output in post:
        channel.queue.put_nowait(output)


class TokenStream:
    """The tokens of one request, as an async iterator; who leaves it early cancels the request.

    Iteration raises `GenerationFailed` where the engine gave up. `counts` is what the cache
    has of the prompt, as far as it is known by now; `finish` is set at the end.
    """

    def __init__(
        self,
        request_id: str,
        queue: asyncio.Queue[Output],
        cancel: Callable[[str], None],
        counts: CacheCounts,
    ) -> None:
        self.request_id = request_id
        self.counts = counts
        self.finish: Finish | None = None
        self._queue = queue
        self._cancel = cancel

    def __aiter__(self) -> TokenStream:
        return self

    async def __anext__(self) -> Token:
        while self.finish is None:
            await asyncio.sleep(0)  # a reader who is behind never waits, and could not be cancelled
            output = await self._queue.get()
            if isinstance(output, Token):
                return output
            if isinstance(output, Finish):
                self.finish = output
            else:
                self.counts = output.counts
        if self.finish.reason is FinishReason.ERROR:
            raise GenerationFailed(self.finish.error)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel what is not finished; the pages are free within one step."""
        self._abandon()

    async def __aenter__(self) -> TokenStream:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._abandon()

    def __del__(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        if self.finish is None:
            self.finish = Finish(self.request_id, FinishReason.CANCELLED)
            self._cancel(self.request_id)
