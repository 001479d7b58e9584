"""The scheduler without a model: what may happen in any order, and what must always hold."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine.types import (
    Admitted,
    Batch,
    CacheCounts,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    Priority,
    Sampled,
    Sequence,
    Token,
)

from .cache_oracle import CacheOracle, Prefix, meaning
from .scheduling import (
    END,
    IMAGES,
    PAGE_SIZE,
    WINDOW,
    Clock,
    cache_marks,
    make_scheduler,
    prompt,
    tokens,
)

SEEDS = st.integers(0, 2**24)  # what is drawn from them is cheaper than a draw


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, go, fail and finish.

    A slot holds the tenant and every id up to its own: what a sequence reads is then
    right for all that went before, whoever has computed it.
    """

    max_drafts = 0

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.scheduler = make_scheduler(
            num_pages=8,
            max_step_tokens=7,
            max_sequences=3,
            clock=self.clock,
            max_drafts=self.max_drafts,
        )
        self.oracle = CacheOracle(self.scheduler.cache)
        self.sequences: dict[str, Sequence] = {}
        self.said: dict[str, list[Output]] = {}
        self.counts: dict[str, CacheCounts] = {}  # as they were said last
        self.computed: dict[str, set[int]] = {}  # places of a prompt that its own steps computed
        self.preempted: set[str] = set()  # what they had found may be computed again
        preempt = self.scheduler._preempt

        def noted(sequence: Sequence) -> None:
            self.preempted.add(sequence.request.id)
            preempt(sequence)

        self.scheduler._preempt = noted  # type: ignore[method-assign]

    @rule(seed=SEEDS)
    def add(self, seed: int) -> None:
        numbers, id = Random(seed), f"r{len(self.said)}"
        ids = prompt(numbers)
        request = GenerationRequest(
            id,
            ids,
            numbers.randint(0, 9),
            frozenset({END}),
            tenant=numbers.choice("aab"),
            images=numbers.choice(IMAGES),
            marks=cache_marks(numbers, len(ids)),
            priority=numbers.choice(list(Priority)),
        )
        self.sequences[id] = Sequence(request, list(ids))
        self.said[id], self.computed[id] = [], set()
        num_found = self.oracle.num_found(request)
        self.counts[id] = self.scheduler.add(self.sequences[id])
        if len(ids) == WINDOW and request.max_tokens > 0:
            assert self.counts[id] == CacheCounts()  # nothing is computed
            return
        assert self.counts[id].reused == num_found
        self.look_at(request, self.counts[id])

    @precondition(lambda self: self.said)
    @rule(seed=SEEDS)
    def cancel(self, seed: int) -> None:
        self.scheduler.cancel(Random(seed).choice([*self.said, "nobody"]))

    @rule(seconds=st.sampled_from((1, 200, 4000)))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(seed=SEEDS)
    def steps(self, seed: int) -> None:
        numbers = Random(seed)
        for _ in range(numbers.randint(1, 5)):
            self.step(numbers)

    def step(self, numbers: Random) -> None:
        batch = self.scheduler.schedule()
        self.run(batch)
        if batch.request_ids and numbers.random() < 0.1:
            self.scheduler.cancel(numbers.choice(batch.request_ids))
        self.commit(batch, [self.sample(each, numbers) for each in dict.fromkeys(batch.sample_ids)])

    def sample(self, id: str, numbers: Random) -> list[Sampled]:
        """Some of the drafts and one id more, or a failure."""
        if numbers.random() < 0.1:
            return [Finish(id, FinishReason.ERROR, "it failed", numbers.random() < 0.5)]
        drafts = self.sequences[id].drafts
        accepted = drafts[: numbers.randint(0, len(drafts))]
        return [Token(id, each, 0.0) for each in (*accepted, numbers.choice((END, 1, 1, 2)))]

    @rule()
    def failing_step(self) -> None:
        batch = self.scheduler.schedule()
        self.hear(self.scheduler.fail(batch, "the device is gone"))

    @invariant()
    def everything_holds(self) -> None:
        self.scheduler.check()
        assert self.scheduler.cache.entries.index.num_pinned <= 4

    @invariant()
    def no_two_pages_hold_the_same(self) -> None:
        """Whoever has computed a page shares it with all others that have."""
        pages: dict[Prefix, int] = {}
        for each in (*self.scheduler.running, *self.scheduler.waiting):
            for place in range(each.num_computed // PAGE_SIZE):
                if self.oracle.is_withdrawn(each.page_table[place]):
                    break  # nor is what follows it
                held = meaning(each.request, each.ids, (place + 1) * PAGE_SIZE)
                assert pages.setdefault(held, each.page_table[place]) == each.page_table[place]

    def teardown(self) -> None:
        for _ in range(100 * (len(self.said) + 1)):
            if not self.scheduler.has_work:
                break
            batch = self.scheduler.schedule()
            self.run(batch)
            self.commit(batch, tokens(batch))
        assert all(isinstance(said[-1], Finish) for said in self.said.values())
        assert self.scheduler.cache.pool.num_used == 0
        self.scheduler.check()

    def run(self, batch: Batch) -> None:
        """Write the batch's ids to their slots; each context must then be whole."""
        for part in batch.split():
            sequence, (table,) = self.sequences[part.request_ids[0]], part.page_tables
            request, ids = sequence.request, sequence.ids + sequence.drafts
            start, (stop,) = part.positions[0], part.context_lens
            assert part.input_ids == ids[start:stop]
            if not self.computed[request.id] and request.id not in self.preempted:
                assert sequence.counts is not None
                assert sequence.counts.reused == start
            for position, slot in zip(part.positions, part.slots, strict=True):
                self.oracle.slots[slot] = meaning(request, ids, position + 1)
            for position in range(stop):
                slot = table[position // PAGE_SIZE] * PAGE_SIZE + position % PAGE_SIZE
                assert self.oracle.slots[slot] == meaning(request, ids, position + 1)
        assert len(batch.input_ids) <= 7
        assert batch.input_ids or not (self.scheduler.running or self.scheduler.waiting)
        assert {each.request.id for each in self.moving()} <= set(batch.request_ids)

    def moving(self) -> list[Sequence]:
        """Those that get something in each step: the first one, and all that decode."""
        running = self.scheduler.running
        return [*running[:1], *(each for each in running if each.num_pending == 1)]

    def commit(self, batch: Batch, sampled: list[list[Sampled]]) -> None:
        """Note what is computed, but that of a row that failed."""
        failed = {
            id
            for id, outputs in zip(dict.fromkeys(batch.sample_ids), sampled, strict=True)
            if not isinstance(outputs[0], Token)
        }
        for part in batch.split():
            id, (stop,) = part.request_ids[0], part.context_lens
            if id in failed or not self.is_open(id):
                continue
            self.computed[id].update(range(part.positions[0], min(stop, self.num_prompt(id))))
        self.hear(self.scheduler.commit(batch, sampled))

    def is_open(self, id: str) -> bool:
        return any(
            each.request.id == id for each in (*self.scheduler.running, *self.scheduler.waiting)
        )

    def num_prompt(self, id: str) -> int:
        return len(self.sequences[id].request.prompt_ids)

    def look_at(self, request: GenerationRequest, counts: CacheCounts) -> None:
        """The three parts of the input are those of its marks."""
        last = max([mark.num_tokens for mark in request.marks], default=0)
        hour = max([mark.num_tokens for mark in request.marks if mark.ttl_s == 3600], default=0)
        assert counts.read <= last
        assert counts.written_1h == max(0, hour - counts.read)
        assert counts.read + counts.written_5m + counts.written_1h == last
        assert counts.reused < len(request.prompt_ids)

    def hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            id = output.request_id
            said, request = self.said[id], self.sequences[id].request
            assert not any(isinstance(each, Finish) for each in said), "spoken after the finish"
            if isinstance(output, Admitted):
                self.look_at(request, output.counts)
                assert not said, "counts are corrected before the first token, or never"
                assert output.counts != self.counts[id]
                self.counts[id] = output.counts
            elif isinstance(output, Token) and not any(isinstance(each, Token) for each in said):
                num_done = len(self.computed[id]) + self.counts[id].reused
                assert num_done >= self.num_prompt(id)
                assert num_done == self.num_prompt(id) or id in self.preempted
            said.append(output)
            assert sum(isinstance(each, Token) for each in said) <= request.max_tokens


class SpeculatingMachine(SchedulerMachine):
    """The same with drafts, of which some are accepted: they reach nobody's pages."""

    max_drafts = 5


THOROUGH = settings(max_examples=60, stateful_step_count=50, derandomize=True)
TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = THOROUGH
TestSpeculatingScheduler = SpeculatingMachine.TestCase
TestSpeculatingScheduler.settings = THOROUGH
