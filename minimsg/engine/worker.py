"""The engine's thread and its asyncio face: the one place where the two meet.

Down: a request goes into the engine's queue at once, under its lock; orders (cancel, stop)
go through a queue of their own, which the thread reads between two steps and sleeps on when
there is nothing to do. Up: what a step said, in one call into
each event loop, from there into one queue a request (`token_stream.py`). An engine that
fails as a whole ends every stream and is set up anew, after a pause (`restarts.py`).
Knows requests and loops; nothing of HTTP. The heart is `engine.py`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import ceil
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Final

from minimsg.engine.channels import Channel, Posts, deliver
from minimsg.engine.meter import EngineStats, Meter
from minimsg.engine.pause import Pause
from minimsg.engine.restarts import Restarts
from minimsg.engine.snapshot import Onlookers
from minimsg.engine.token_stream import TokenStream
from minimsg.engine.types import Finish, FinishReason, GenerationRequest, Output
from minimsg.errors import GenerationFailed, InvalidRequest, Overloaded

if TYPE_CHECKING:  # a server can be read, and its routes listed, where torch is not installed
    from minimsg.engine.engine import Engine

logger = logging.getLogger("minimsg")

RETRY: Final = {"retry-after": "2"}  # seconds; of many replies one has ended by then
STOPPED: Final = "the engine has stopped"
HANG_S: Final = 10.0  # how long `stop` waits for a step that does not return


class EngineWorker:
    """Runs an engine in its own thread for any number of event loops."""

    def __init__(self, engine: Engine, max_queue: int, restarts: Restarts | None = None) -> None:
        """At most `max_queue` requests wait beside those that the engine can run at once."""
        self.engine = engine
        self.max_open = max_queue + engine.config.max_sequences
        self.meter = Meter()
        self.onlookers = Onlookers()
        self._pause = Pause()
        self._restarts = restarts or Restarts()
        # A SimpleQueue: it may be put to by a garbage collected stream in the midst of anything.
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()  # guards the next four
        self._channels: dict[str, Channel] = {}  # of the requests whose `Finish` is not said
        self._new: set[str] = set()  # those of them of which nothing was computed
        self._is_stopping = False
        self._failure: str | None = None  # why the engine takes no requests, if it failed
        self._is_over = False  # the thread has ended or is about to
        self._back_at = 0.0  # when an engine that failed works again
        self._stop_at: float | None = None
        self._num_steps = self._num_restarts = 0
        self._num_preemptions = self._earlier_preemptions = 0  # earlier: before the last restart
        self._beat, self._is_idle = monotonic(), True
        self._thread = threading.Thread(target=self._run, name="minimsg-engine", daemon=True)

    @property
    def max_context(self) -> int:
        """The window in tokens, as memory left it."""
        return self.engine.max_context

    @property
    def is_alive(self) -> bool:
        """Whether the engine works and takes requests; streams learn of its end no earlier."""
        return self._thread.is_alive() and self._failure is None

    @property
    def is_over(self) -> bool:
        """Whether the engine has ended for good, stopped or failed too often."""
        return self._is_over

    @property
    def heartbeat_age_s(self) -> float:
        """Seconds since the thread's last turn; 0 while it waits for work."""
        return 0.0 if self._is_idle else monotonic() - self._beat

    def stats(self) -> EngineStats:
        """The engine's figures, from any thread."""
        pool, running = self.engine.pool, len(self.engine.scheduler.running)
        hits = self.meter.reused_tokens  # before the queries, which it must not exceed
        drafts = self.engine.draft_counts
        accepted = drafts.accepted  # before the proposed ones, likewise
        pages = None
        while pages != (pages := (pool.num_free, pool.num_cached)):
            pass  # a step came between the two
        return EngineStats(
            num_pages=pool.num_pages,
            free_pages=pages[0],
            cached_pages=pages[1],
            pinned_pages=self.engine.cache.index.num_pinned,
            running=running,
            waiting=max(0, len(self._channels) - running),
            steps=self._num_steps,
            preemptions=self._num_preemptions,
            drafted_tokens=drafts.proposed,
            accepted_tokens=accepted,
            prefix_queries=self.meter.prompt_tokens if self.engine.cache.is_on else 0,
            prefix_hits=hits,
            restarts=self._num_restarts,
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
        Raises `InvalidRequest`, `Overloaded` when too many wait or the worker is stopping or
        starting again, and `GenerationFailed` when the engine has failed for good.
        """
        self.engine.check(request)
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Output]()
        with self._lock:
            self.check_room()
            if request.id in self._channels:
                raise InvalidRequest("", f"request {request.id!r} is already running")
            counts = self.engine.add(request)
            progress = self.meter.open(request, counts, monotonic())
            self._channels[request.id] = Channel(loop, queue, progress)
            self._new.add(request.id)
            self._orders.put(_wake)
        return TokenStream(request.id, queue, self.cancel, counts)

    def cancel(self, request_id: str) -> None:
        """End a request within one step: from any thread, in any state, once or twice."""
        self._orders.put(partial(self.engine.cancel, request_id))

    @property
    def pause_left_s(self) -> float:
        """Seconds until an engine that is paused goes on by itself; 0: it is not paused."""
        return self._pause.left_s

    def pause(self, num_steps: int = 0) -> None:
        """Let the engine take `num_steps` more steps, then none for a while (`pause.py`)."""
        self._orders.put(partial(self._hold, num_steps))

    def resume(self) -> None:
        """Let the engine go on."""
        self._orders.put(self._pause.release)

    def check_room(self) -> None:
        """Raise if one more request cannot be taken: `Overloaded`, `GenerationFailed`."""
        if self._is_stopping:
            raise Overloaded("The server is shutting down.", headers=RETRY)
        if (failure := self._failure) is not None:
            if self._is_over:
                raise GenerationFailed(failure)
            seconds = max(1, ceil(self._back_at - monotonic()))
            why = "The engine has failed and is being started again."
            raise Overloaded(why, headers={"retry-after": str(seconds)})
        if len(self._channels) >= self.max_open:
            why = f"Overloaded: {len(self._channels)} requests are running or waiting."
            raise Overloaded(why, headers=RETRY)

    # The rest runs in the thread.

    def _run(self) -> None:
        """Work until told to stop; whatever happens, no stream is left without its end."""
        error = STOPPED
        try:
            while (failure := self._work()) is not None:
                error = failure
                if not self._start_again(error):
                    return
            error = STOPPED
        finally:
            self._is_over = True
            self._end_streams(error)

    def _work(self) -> str | None:
        """Turn until told to stop, or until the engine fails: then why."""
        try:
            while self._stop_at is None or self.engine.has_work:
                self._turn()
        except BaseException as failure:  # the boundary: whatever it is, streams wait for an end
            logger.critical("the engine has failed", exc_info=True)
            return f"{type(failure).__name__}: {failure}"
        return None

    def _turn(self) -> None:
        """Orders, a step, its outputs."""
        self._take_orders()
        if self._stop_at is not None and monotonic() >= self._stop_at:
            for request_id in list(self._channels):
                self.engine.cancel(request_id)
        if not self.engine.has_work:
            self._pause.drop_steps()
        elif self._pause.may_step:
            outputs = self._step()
            self._num_preemptions = (
                self._earlier_preemptions + self.engine.scheduler.num_preemptions
            )
            self._note_begun()
            self._publish(outputs)

    def _step(self) -> list[Output]:
        engine, started = self.engine, self._beat
        outputs = engine.step()
        self._num_steps += 1
        self._pause.note_step()
        assert engine.batch is not None
        self.onlookers.note(engine.scheduler, engine.batch, engine.num_steps, started)
        return outputs

    def _take_orders(self) -> None:
        """Do what was ordered since the last step; sleep if there is nothing else to do."""
        self._beat = monotonic()
        if not (self.engine.has_work and self._pause.may_step):
            self._is_idle = True
            wait_s = self._pause.left_s if self.engine.has_work else None
            order = self._next_order(wait_s)
            self._beat, self._is_idle = monotonic(), False
            order()
        while not self._orders.empty():  # nobody else takes from it
            self._orders.get()()

    def _next_order(self, wait_s: float | None) -> Callable[[], None]:
        """The next one; nothing to do if none comes in time."""
        try:
            return self._orders.get(timeout=wait_s)
        except Empty:
            return _wake

    def _hold(self, num_steps: int) -> None:
        if self._stop_at is None:
            self._pause.hold(num_steps)

    def _stop_by(self, deadline: float) -> None:
        self._stop_at = min(deadline, self._stop_at or deadline)
        self._pause.release()

    def _note_begun(self) -> None:
        """Stop the clock of the queue for those that were in their first step."""
        assert self.engine.batch is not None
        with self._lock:
            begun = self._new.intersection(self.engine.batch.request_ids)
            self._new -= begun
            for request_id in begun:
                self.meter.begin(self._channels[request_id].progress, self._beat)

    def _publish(self, outputs: list[Output]) -> None:
        """Hand outputs to their event loops, in one call each."""
        posts, now = self._addressed(outputs), monotonic()
        finished = {each.request_id for each in outputs if isinstance(each, Finish)}
        ended = {request_id: self._channels[request_id] for request_id in finished}
        with self._lock:
            self._new -= finished
            for request_id in finished:
                del self._channels[request_id]
        try:
            said = ((channel.progress, each) for post in posts.values() for channel, each in post)
            self.meter.push(said, now)
            for request_id in deliver(posts):
                self.engine.cancel(request_id)
        except BaseException:  # some were not told: they still need an end
            with self._lock:
                self._channels |= ended
            raise

    def _addressed(self, outputs: list[Output]) -> Posts:
        posts: Posts = {}
        for output in outputs:
            channel = self._channels[output.request_id]
            posts.setdefault(channel.loop, []).append((channel, output))
        return posts

    def _start_again(self, error: str) -> bool:
        """End what the engine ran, set it up anew, wait; False if it is not to be tried again.

        The pages are free and orders are harmless before the pause, not only after it.
        """
        pause_s = self._restarts.pause_s(monotonic())
        self._back_at = monotonic() + (pause_s or 0.0)
        self._is_over = pause_s is None
        self._end_streams(error)
        if pause_s is None or not self._reset():
            return False
        logger.error("the engine starts again in %g s", pause_s)
        self._wait_until(self._back_at)
        self._num_restarts += 1
        self._beat, self._failure = monotonic(), None
        return True

    def _reset(self) -> bool:
        """Whether the engine could be set up anew."""
        self._earlier_preemptions = self._num_preemptions
        try:
            self.engine.reset()
        except BaseException:  # the boundary, as in `_work`
            logger.critical("the engine could not be set up anew", exc_info=True)
            return False
        return True

    def _wait_until(self, time: float) -> None:
        """Take orders until `time`, or until told to stop."""
        while self._stop_at is None and (left_s := time - monotonic()) > 0:
            with suppress(Empty):
                self._orders.get(timeout=left_s)()

    def _end_streams(self, error: str) -> None:
        """Take no more requests, and tell those that are open why."""
        with self._lock:
            self._failure = error
            channels, self._channels, self._new = self._channels, {}, set()
        posts: Posts = {}
        for request_id, channel in channels.items():
            finish = Finish(request_id, FinishReason.ERROR, error)
            posts.setdefault(channel.loop, []).append((channel, finish))
        deliver(posts)


def _wake() -> None:
    """The order that has the thread look for work."""
