"""Who runs next: admission, chunked prefill, decode, preemption, the end of a request.

Knows ids, pages and limits; no tensor and no text. `schedule` says what the next
step computes, `commit` takes its ids. Interactive requests go before background ones;
within one priority the order of arrival is kept: the oldest sequence always advances, and
when pages run out the youngest gives its own back and is computed again later (recompute,
vLLM, arXiv 2309.06180 section 4.5), so nothing starves and output never depends on
pressure. In each step every decoding sequence gets its row, and prompts share the tokens
that are left (`chunks.py`). Pages come from `prompt_cache.py`. Next: `runner.py`,
`sampler.py`.
"""

from __future__ import annotations

from bisect import insort

from minimsg.engine import hooks
from minimsg.engine.batch import build_batch
from minimsg.engine.chunks import chunks
from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.speculation import Speculation
from minimsg.engine.timeline import Timeline
from minimsg.engine.types import (
    Admitted,
    Batch,
    CacheCounts,
    Finish,
    FinishReason,
    Output,
    Priority,
    Sampled,
    Sequence,
)
from minimsg.errors import InvalidRequest


class Scheduler:
    """Waiting and running sequences.

    Invariants (`check`): both lists are in order of rank, and of one priority whoever runs
    came before whoever waits; a waiting sequence holds nothing but published pages; each
    request is told exactly one `Finish`, after its last `Token`.
    """

    def __init__(
        self,
        cache: PromptCache,
        speculation: Speculation,
        *,
        max_context: int,
        max_step_tokens: int,
        max_sequences: int,
        timeline: Timeline | None = None,
    ) -> None:
        self.cache = cache
        self.speculation = speculation
        self.page_size = cache.page_size
        assert cache.pool.num_pages * self.page_size >= max_context, (
            "the pool must hold one full window"
        )
        assert min(max_context, max_step_tokens, max_sequences) > 0
        self.max_context = max_context
        self.max_step_tokens = max_step_tokens
        self.max_running = min(max_sequences, max_step_tokens)  # each may need a row
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_preemptions = 0
        self.timeline = timeline or Timeline(self.page_size)
        self._num_arrived = 0
        self._sequences: dict[str, Sequence] = {}
        self._said: dict[str, CacheCounts] = {}
        self._scheduled: dict[str, Sequence] = {}  # those of the latest batch
        self._outputs: list[Output] = []  # said at the next commit

    @property
    def has_work(self) -> bool:
        """Whether a step would compute or say something."""
        return bool(self._sequences or self._outputs)

    @property
    def sequences(self) -> list[Sequence]:
        """Those that run, then those that wait, each in order of rank."""
        return [*self.running, *self.waiting]

    @property
    def known(self) -> set[Sequence]:
        """Those, and what the latest batch had beside them."""
        return {*self.running, *self.waiting, *self._scheduled.values()}

    def add(self, sequence: Sequence) -> CacheCounts:
        """Queue a new sequence, which holds at once what the cache has of it; the counts of that.

        They stand unless pressure takes the pages before the first step: then an `Admitted`
        follows. Raises `InvalidRequest` if it cannot fit the window.
        """
        request, num_ids = sequence.request, len(sequence.ids)
        self.check_length(num_ids)
        if request.id in self._sequences:
            raise InvalidRequest("", f"request {request.id!r} is already running")
        if num_ids == self.max_context and request.max_tokens > 0:
            self._outputs.append(Finish(request.id, FinishReason.CONTEXT))
            return CacheCounts()  # nothing is computed
        self._num_arrived += 1
        sequence.arrival = self._num_arrived
        counts = self._said[request.id] = self.cache.open(sequence)
        self._sequences[request.id] = sequence
        insort(self.waiting, sequence, key=rank)
        return counts

    def check_length(self, num_ids: int) -> None:
        """Raise `InvalidRequest` for a prompt of more ids than the window has."""
        if num_ids > self.max_context:
            why = f"prompt is too long: {num_ids} tokens > {self.max_context} maximum"
            raise InvalidRequest("", why)

    def cancel(self, request_id: str) -> None:
        """End a request in whatever state it is and free its pages now; unknown ids are fine."""
        if sequence := self._sequences.get(request_id):
            self._finish(sequence, FinishReason.CANCELLED)

    def schedule(self) -> Batch:
        """What the next step computes: a row of each decoding sequence, then prefill chunks.

        The first running sequence always advances. Changes who holds pages, not what is
        computed: without a commit it can be asked again.
        """
        self.speculation.withdraw()
        self._grow()
        self._admit()
        self.speculation.draft(self.running, self.max_step_tokens - len(self.running))
        spans = self._spans()
        self._scheduled = {sequence.request.id: sequence for sequence, _ in spans}
        self.timeline.begin(self._scheduled.values())
        return build_batch(spans, self.page_size)

    def sampling(self, batch: Batch) -> list[Sequence]:
        """The sequences that sample, in order; those with drafts have several of the S rows."""
        return [self._scheduled[request_id] for request_id in dict.fromkeys(batch.sample_ids)]

    @property
    def tenants(self) -> dict[str, str]:
        """Whose each request of the latest batch is."""
        return {id: sequence.request.tenant for id, sequence in self._scheduled.items()}

    def commit(self, batch: Batch, sampled: list[list[Sampled]]) -> list[Output]:
        """Take what a step computed and sampled; everything to be said since the last commit.

        `sampled` holds, for each sequence that samples, its tokens or the `Finish` of a row
        that failed. What was cancelled since `schedule` is ignored.
        """
        self._outputs += self.timeline.told(batch)
        sampling = dict.fromkeys(batch.sample_ids)
        for request_id in batch.request_ids:
            if sequence := self._live(request_id):
                self.cache.begin(sequence)
                if sequence.watched is not None and sequence.watched.error is not None:
                    self._finish(sequence, FinishReason.ERROR, sequence.watched.error)
        for request_id, outputs in zip(sampling, sampled, strict=True):
            first, sequence = outputs[0], self._live(request_id)
            if sequence and isinstance(first, Finish) and first.is_broken:
                self._distrust(sequence, first)
        for request_id, context_len in zip(batch.request_ids, batch.context_lens, strict=True):
            if sequence := self._live(request_id):
                self._computed(sequence, min(context_len, len(sequence.ids)))
        for request_id, outputs in zip(sampling, sampled, strict=True):
            if sequence := self._live(request_id):
                self.speculation.settle(sequence, len(outputs) - 1)
            for output in outputs:
                if sequence := self._live(request_id):
                    self._accept(sequence, output)
        return self._take_outputs()

    def fail(self, batch: Batch, error: str) -> list[Output]:
        """End every request of a batch that could not be run."""
        for request_id in batch.request_ids:
            if sequence := self._live(request_id):
                self._finish(sequence, FinishReason.ERROR, error)
        return self._take_outputs()

    def check(self) -> None:
        """Assert every invariant; cheap enough to call after each step of a test."""
        sequences = self.sequences
        self.cache.check(sequences)
        assert len(self._sequences) == len(sequences)
        assert all(self._sequences[each.request.id] is each for each in sequences)
        assert sorted(self.running, key=rank) == self.running
        assert sorted(self.waiting, key=rank) == self.waiting
        for running in self.running:
            for waiting in self.waiting:
                is_older = running.arrival < waiting.arrival
                assert is_older or running.request.priority != waiting.request.priority
        assert len(self.running) <= self.max_running
        for sequence in self.waiting:
            assert sequence.num_published == len(sequence.page_table), "a waiting one owns pages"
            assert sequence.num_computed == sequence.num_published * self.page_size
        for sequence in self.running:
            assert sequence.num_pending > 0, "a running sequence has nothing to run"
            assert sequence.num_computed <= len(sequence.page_table) * self.page_size
            assert len(sequence.ids) <= self.max_context

    def _grow(self) -> None:
        """Give each running sequence, in order of rank, the pages of its ids; the last pay.

        A lone sequence never pays: the pool holds a full window.
        """
        index = 0
        while index < len(self.running):
            sequence = self.running[index]
            if self._provide(sequence, len(sequence.ids)):
                index += 1
            else:
                self._preempt(self.running[-1])

    def _admit(self) -> None:
        """Start waiting sequences in order of rank, while there is room for all their ids.

        One slot more than the ids need: the first token must not cost a preemption.
        """
        while self.waiting:
            sequence = self.waiting[0]
            self.cache.share(sequence)
            if not self._make_room(sequence):
                return
            insort(self.running, self.waiting.pop(0), key=rank)

    def _make_room(self, sequence: Sequence) -> bool:
        """Room for one more, at the cost of those of a lower priority."""
        num_slots = min(len(sequence.ids) + 1, self.max_context)
        while len(self.running) >= self.max_running or not self._provide(sequence, num_slots):
            last = self.running[-1]
            if last.request.priority <= sequence.request.priority:
                return False
            self._preempt(last)
        return True

    def _spans(self) -> list[tuple[Sequence, int]]:
        """How many of their next ids the running sequences compute, within the budget."""
        for sequence in self.running:
            if sequence.num_pending > 1:
                self.cache.share(sequence)
        prompts = [sequence for sequence in self.running if sequence.num_pending > 1]
        spans = [(sequence, 1) for sequence in self.running if sequence.num_pending == 1]
        is_interactive = any(each.request.priority is Priority.INTERACTIVE for each in self.running)
        budget = self.max_step_tokens - len(spans)
        return spans + chunks(prompts, budget, self.cache, is_interactive=is_interactive)

    def _provide(self, sequence: Sequence, num_slots: int) -> bool:
        """Pages for `num_slots` slots, at the cost of those who only wait."""
        while not self.cache.provide(sequence, num_slots):
            holders = [each for each in self.waiting if each.page_table and each is not sequence]
            if not holders:
                return False
            self.cache.release(holders[-1])
        return True

    def _preempt(self, sequence: Sequence) -> None:
        """Back to the queue; its ids, generated ones too, are prefilled again."""
        self.running.remove(sequence)
        self.cache.release(sequence)
        insort(self.waiting, sequence, key=rank)
        sequence.change = "preempted"
        self.num_preemptions += 1

    def _computed(self, sequence: Sequence, context_len: int) -> None:
        """The first `context_len` ids of a sequence are in its pages."""
        sequence.num_computed = context_len
        self.cache.publish(sequence)
        if sequence.num_pending or sequence.num_generated:
            return
        self.cache.write(sequence)
        if sequence.counts is not None and sequence.counts != self._said[sequence.request.id]:
            self._outputs.append(Admitted(sequence.request.id, sequence.counts))

    def _accept(self, sequence: Sequence, output: Sampled) -> None:
        """Append one sampled id, or end the sequence whose row failed."""
        if isinstance(output, Finish):
            self._finish(sequence, output.reason, output.error)
            return
        if sequence.request.max_tokens == 0:  # the row only shows that the numbers are right
            self._finish(sequence, FinishReason.LENGTH)
            return
        if sequence.num_pending:  # an id of this step, that was its draft
            self._computed(sequence, len(sequence.ids))
        sequence.ids.append(output.id)
        self._outputs.append(output)
        error = hooks.advance(sequence, output.id)
        reason = FinishReason.ERROR if error else self._finish_reason(sequence)
        if reason:
            self._finish(sequence, reason, error)

    def _distrust(self, sequence: Sequence, finish: Finish) -> None:
        """Numbers are wrong: whoever has used what the sequence has begins anew without it.

        So does the sequence, once, if it had used what others computed; else it ends.
        """
        self.cache.distrust(sequence)
        for running in list(self.running):
            if running is not sequence and not self.cache.is_trusted(running):
                self._preempt(running)
        for waiting in self.waiting:
            if not self.cache.is_trusted(waiting):
                self.cache.release(waiting)
        if sequence.num_taken and not sequence.is_retried:
            sequence.is_retried = True
            self._preempt(sequence)
            sequence.change = "retried"
        else:
            self._finish(sequence, finish.reason, finish.error)

    def _finish_reason(self, sequence: Sequence) -> FinishReason | None:
        """Why a sequence ends with its last id, if it does; the first that holds."""
        if sequence.ids[-1] in sequence.request.end_ids:
            return FinishReason.END
        if sequence.num_generated >= sequence.request.max_tokens:
            return FinishReason.LENGTH
        if len(sequence.ids) >= self.max_context:
            return FinishReason.CONTEXT
        return None

    def _finish(self, sequence: Sequence, reason: FinishReason, error: str | None = None) -> None:
        (self.running if sequence in self.running else self.waiting).remove(sequence)
        self.cache.close(sequence)
        self.speculation.close(sequence)
        if sequence.watched is not None:
            sequence.watched.is_over = True
        del self._sequences[sequence.request.id], self._said[sequence.request.id]
        self._outputs.append(Finish(sequence.request.id, reason, error))

    def _live(self, request_id: str) -> Sequence | None:
        """The scheduled sequence of that id, unless it was ended or preempted since.

        Its id may be in use again; one that is preempted has no pages.
        """
        sequence = self._scheduled[request_id]
        is_open = self._sequences.get(request_id) is sequence
        return sequence if is_open and sequence.page_table else None

    def _take_outputs(self) -> list[Output]:
        outputs, self._outputs = self._outputs, []
        return outputs


def rank(sequence: Sequence) -> tuple[int, int]:
    """Whose turn it is: a lower rank goes first."""
    return sequence.request.priority, sequence.arrival
