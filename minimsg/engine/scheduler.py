"""Who runs next: admission, chunked prefill, decode, preemption, the end of a request.

Knows ids, pages and limits; no tensor and no text. `schedule` says what the next
step computes, `commit` takes its ids. The order of arrival is kept throughout: the
oldest sequence always advances, and when pages run out the youngest gives its own
back and is computed again later (recompute, vLLM, arXiv 2309.06180 section 4.5), so
nothing starves and output never depends on pressure. Next: `runner.py`, `sampler.py`.
"""

from __future__ import annotations

from collections import deque

from minimsg.engine.pages import PagePool
from minimsg.engine.types import Batch, Finish, FinishReason, Output, Sequence, Token
from minimsg.errors import InvalidRequest


class Scheduler:
    """Waiting and running sequences, and the pages that the running ones hold.

    Invariants (`check`): `running` then `waiting` is the order of arrival; only running
    sequences hold pages; each request is told exactly one `Finish`, after its last `Token`.
    """

    def __init__(
        self,
        pool: PagePool,
        *,
        page_size: int,
        max_context: int,
        max_batch_tokens: int,
        max_sequences: int,
    ) -> None:
        assert pool.num_pages * page_size >= max_context, "the pool must hold one full window"
        assert min(max_context, max_batch_tokens, max_sequences) > 0
        self.pool = pool
        self.page_size = page_size
        self.max_context = max_context
        self.max_batch_tokens = max_batch_tokens
        self.max_sequences = max_sequences
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._sequences: dict[str, Sequence] = {}  # in order of arrival
        self._scheduled: dict[str, Sequence] = {}  # those of the latest batch
        self._outputs: list[Output] = []  # said at the next commit

    @property
    def has_work(self) -> bool:
        """Whether a step would compute or say something."""
        return bool(self._sequences or self._outputs)

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence. Raises `InvalidRequest` if it cannot fit the window."""
        request, num_ids = sequence.request, len(sequence.ids)
        self.check_length(num_ids)
        if request.id in self._sequences:
            raise InvalidRequest("", f"request {request.id!r} is already running")
        self._sequences[request.id] = sequence
        self.waiting.append(sequence)
        if num_ids == self.max_context and request.max_tokens > 0:
            self._finish(sequence, FinishReason.CONTEXT)

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

        Every running sequence advances in every step. Changes who holds pages, not what is
        computed: without a commit it can be asked again.
        """
        self._grow()
        self._admit()
        spans = self._spans()
        self._scheduled = {sequence.request.id: sequence for sequence, _ in spans}
        return build_batch(spans, self.page_size)

    def sampling(self, batch: Batch) -> list[Sequence]:
        """(S,) the sequences of the rows that sample."""
        return [self._scheduled[request_id] for request_id in batch.sample_ids]

    def commit(self, batch: Batch, sampled: list[list[Output]]) -> list[Output]:
        """Take what a step computed and sampled; everything to be said since the last commit.

        `sampled` holds, for each of the S rows, its tokens or the `Finish` of a row that
        failed. What was cancelled since `schedule` is ignored.
        """
        for request_id, context_len in zip(batch.request_ids, batch.context_lens, strict=True):
            if sequence := self._live(request_id):
                sequence.num_computed = context_len
                if sequence.request.max_tokens == 0 and not sequence.num_pending:
                    self._finish(sequence, FinishReason.LENGTH)
        for request_id, outputs in zip(batch.sample_ids, sampled, strict=True):
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
        self.pool.check()
        order = [*self.running, *self.waiting]
        assert list(self._sequences.values()) == order, "the order of arrival is broken"
        assert len(self.running) <= self.max_sequences
        held = [page for sequence in self.running for page in sequence.page_table]
        assert len(held) == len(set(held)) == self.pool.num_pages - self.pool.num_free
        for sequence in self.waiting:
            assert not sequence.page_table, "a waiting sequence holds pages"
            assert sequence.num_computed == 0
        for sequence in self.running:
            assert sequence.num_pending > 0, "a running sequence has nothing to run"
            assert sequence.num_computed <= len(sequence.page_table) * self.page_size
            assert len(sequence.ids) <= self.max_context

    def _grow(self) -> None:
        """Give each running sequence, oldest first, the pages of its ids; the youngest pay.

        A lone sequence never pays: the pool holds a full window.
        """
        index = 0
        while index < len(self.running):
            sequence = self.running[index]
            if self._provide(sequence, len(sequence.ids)):
                index += 1
            else:
                self._preempt_youngest()

    def _admit(self) -> None:
        """Start waiting sequences, oldest first, while tokens and pages for all their ids last.

        The last one started may get only a part of its prompt into the step; all before it
        then decode. One slot more than the ids need: the first token must not cost a preemption.
        """
        planned = sum(sequence.num_pending for sequence in self.running)
        while (
            self.waiting
            and planned < self.max_batch_tokens
            and len(self.running) < self.max_sequences
        ):
            sequence = self.waiting[0]
            if not self._provide(sequence, min(len(sequence.ids) + 1, self.max_context)):
                return
            self.running.append(self.waiting.popleft())
            planned += sequence.num_pending

    def _spans(self) -> list[tuple[Sequence, int]]:
        """How many of their next ids the running sequences compute, within the budget."""
        budget = self.max_batch_tokens
        spans = []
        for sequence in self.running:
            count = min(sequence.num_pending, budget)
            assert count, "a running sequence gets no row"
            spans.append((sequence, count))
            budget -= count
        return spans

    def _provide(self, sequence: Sequence, num_slots: int) -> bool:
        """Grow a page table to `num_slots` slots, or say that the pages are not there."""
        num_pages = -(-num_slots // self.page_size)
        pages = self.pool.allocate(max(0, num_pages - len(sequence.page_table)))
        if pages is None:
            return False
        sequence.page_table += pages
        return True

    def _preempt_youngest(self) -> None:
        """Back to the head of the queue; its ids, generated ones too, are prefilled again."""
        sequence = self.running.pop()
        self._release(sequence)
        self.waiting.appendleft(sequence)

    def _release(self, sequence: Sequence) -> None:
        self.pool.free(sequence.page_table)
        sequence.page_table = []
        sequence.num_computed = 0

    def _accept(self, sequence: Sequence, output: Output) -> None:
        """Append one sampled id, or end the sequence whose row failed."""
        if isinstance(output, Finish):
            self._finish(sequence, output.reason, output.error)
            return
        sequence.ids.append(output.id)
        self._outputs.append(output)
        error = advance_hook(sequence, output)
        reason = FinishReason.ERROR if error else self._finish_reason(sequence)
        if reason:
            self._finish(sequence, reason, error)

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
        self._release(sequence)
        del self._sequences[sequence.request.id]
        self._outputs.append(Finish(sequence.request.id, reason, error))

    def _live(self, request_id: str) -> Sequence | None:
        """The scheduled sequence of that id, unless it ended since (its id may be in use again)."""
        sequence = self._scheduled[request_id]
        return sequence if self._sequences.get(request_id) is sequence else None

    def _take_outputs(self) -> list[Output]:
        outputs, self._outputs = self._outputs, []
        return outputs


def build_batch(spans: list[tuple[Sequence, int]], page_size: int) -> Batch:
    """Flatten (sequence, number of its next ids) pairs into one batch.

    A sequence samples in the step that computes the last of its known ids.
    """
    batch = Batch([], [], [], [], [0], [], [], [], [])
    for sequence, count in spans:
        start, end = sequence.num_computed, sequence.num_computed + count
        batch.request_ids.append(sequence.request.id)
        batch.input_ids.extend(sequence.ids[start:end])
        batch.positions.extend(range(start, end))
        batch.slots.extend(
            sequence.page_table[position // page_size] * page_size + position % page_size
            for position in range(start, end)
        )
        batch.query_starts.append(len(batch.input_ids))
        batch.context_lens.append(end)
        batch.page_tables.append(sequence.page_table[: -(-end // page_size)])
        if end == len(sequence.ids) and sequence.request.max_tokens > 0:
            batch.sample_rows.append(len(batch.input_ids) - 1)
            batch.sample_ids.append(sequence.request.id)
    return batch


def advance_hook(sequence: Sequence, token: Token) -> str | None:
    """Tell a sequence's hook of a committed id; what went wrong, if it raised."""
    if sequence.request.hook is None:
        return None
    try:
        sequence.request.hook.advance(token.id)
    except Exception as error:  # a grammar's failure ends its own request, no neighbour's
        return f"{type(error).__name__}: {error}"
    return None
