"""The heart: `step` schedules, runs, samples, commits. Token ids in, token ids out.

Knows no HTTP, JSON or text. One thread steps an engine: that of a script or notebook through
`generate` and `steps`, a server's in `worker.py`. Read on in the order of `step`:
`scheduler.py`, `runner.py`, `sampler.py`, and the scheduler's `commit`.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Mapping
from collections.abc import Sequence as Ids
from dataclasses import replace

import torch
from torch import Tensor

from minimsg.config import EngineConfig
from minimsg.engine.attending import with_attention
from minimsg.engine.cache import PagedKVCache
from minimsg.engine.entries import Entries
from minimsg.engine.kernel_check import KernelCheck
from minimsg.engine.memory import plan_cache
from minimsg.engine.page_map import page_map
from minimsg.engine.pages import PagePool
from minimsg.engine.prefix import PrefixIndex
from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.request_check import check_images, check_numbers
from minimsg.engine.runner import Runner
from minimsg.engine.sampler import Sampler
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.snapshot import Snapshot, snapshot
from minimsg.engine.speculation import DraftCounts, Speculation
from minimsg.engine.stepping import Step, Steps
from minimsg.engine.tiles import TiledRunner
from minimsg.engine.timeline import Timeline
from minimsg.engine.types import (
    Batch,
    CacheCounts,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    SamplingParams,
    Sequence,
    Token,
)
from minimsg.engine.watching import Functions, Hooks
from minimsg.errors import ConfigError, GenerationFailed
from minimsg.models.contract import Model, SeeingModel

logger = logging.getLogger("minimsg")

GREEDY = SamplingParams(temperature=0)


class Engine:
    """A model, its cache and its queue."""

    def __init__(
        self,
        model: Model,
        config: EngineConfig | None = None,
        *,
        max_context: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        """`max_context` is the model's own window; `self.max_context` is what memory left of it.

        `dtype` is that of the cache. Raises `ConfigError`.
        """
        config, device = config or EngineConfig(), torch.device(device)
        if config.deterministic and config.speculate:
            raise ConfigError("deterministic mode computes one token after the other: no speculate")
        specs = model.cache_specs
        plan = plan_cache(config, specs, model_context=max_context, dtype=dtype, device=device)
        is_tiled = config.deterministic and config.kernel in (None, "tiled")  # others need none
        cache = PagedKVCache(
            specs,
            num_pages=plan.num_pages + is_tiled,  # one more, for padding
            page_size=config.page_size,
            dtype=dtype,
            device=device,
        )
        self.vocab_size, self.sees = model.vocab_size, isinstance(model, SeeingModel)
        self.num_pages, self.max_context = plan.num_pages, plan.max_context
        self.config = config
        self.runner = (TiledRunner if is_tiled else Runner)(model, cache, device)
        if config.check_kernels:
            self.runner.check = KernelCheck(model, config.check_kernels)
        self.draft_counts = DraftCounts()
        self.sampler = Sampler(one_by_one=config.deterministic)
        self.timeline = Timeline(config.page_size, self.runner.layer_errors)
        self.batch: Batch | None = None  # the latest, for those who look on,
        self.logits: Tensor | None = None  # and what its rows were sampled from, if it went well
        self._lock = threading.Lock()  # guards scheduler and cache: requests come from any thread
        self.reset()

    def reset(self) -> None:
        """Forget every request and everything cached; the weights stay as they are."""
        config = self.config
        self.runner.encodings.clear()
        self.hooks.clear()
        pool = PagePool(self.num_pages)
        index = PrefixIndex(pool, config.page_size)
        entries = Entries(index, int(self.num_pages * config.pin_budget))
        cache = PromptCache(pool, index, entries, is_on=not config.no_prefix_cache)
        speculation = Speculation(cache, config.speculate, self.max_context, self.draft_counts)
        scheduler = Scheduler(
            cache,
            speculation,
            max_context=self.max_context,
            max_step_tokens=config.max_step_tokens,
            max_sequences=config.max_sequences,
            timeline=self.timeline,
        )
        with self._lock:
            self.pool, self.cache, self.scheduler = pool, cache, scheduler

    def step(self) -> list[Output]:
        """Compute one batch and say what came of it. A failure ends only whose it is."""
        with self._lock:
            batch = self.batch = self.scheduler.schedule()
        try:
            logits = self.logits = self.runner.run(batch)
            tokens = self.sampler.sample(logits, self.scheduler.sampling(batch))
        except Exception:  # the boundary: the engine lives on
            return self._compute_one_by_one(batch)
        with self._lock:
            return self.scheduler.commit(batch, tokens)

    @property
    def hooks(self) -> Hooks:
        """Who looks at activations (`watching.py`)."""
        return self.runner.hooks

    def add(self, request: GenerationRequest, hooks: Functions | None = None) -> CacheCounts:
        """Queue a request, with a fresh seed if it has none; what the cache has of its prompt.

        `hooks` look at its activations (`watching.py`). From any thread, during a step too.
        Raises `InvalidRequest`.
        """
        self.check(request)
        if hooks:
            self.hooks.add(request.id, hooks)
        if request.sampling.seed is None:
            sampling = replace(request.sampling, seed=secrets.randbits(63))
            request = replace(request, sampling=sampling)
        watched = with_attention(self.hooks.take(request.id), request, self.hooks.points)
        with self._lock:
            counts = self.scheduler.add(
                Sequence(request, list(request.prompt_ids), watched=watched)
            )
            self.hooks.open(request.id, watched)
        return counts

    def cancel(self, request_id: str) -> None:
        """End a request in any state; its pages are free at once. Unknown ids are fine."""
        with self._lock:
            self.scheduler.cancel(request_id)

    def look(self) -> Snapshot:
        """What the engine is doing, from any thread."""
        checks = None if self.runner.check is None else self.runner.check.checks
        with self._lock:
            return snapshot(self.scheduler, self.num_steps, checks)

    @property
    def num_steps(self) -> int:
        """Steps that were begun, before a `reset` too."""
        return self.timeline.num_steps

    @property
    def has_work(self) -> bool:
        """Whether `step` would compute or say anything."""
        return self.scheduler.has_work

    def check(self, request: GenerationRequest) -> None:
        """Raise `InvalidRequest` for what would fail later, or fail others. Safe in any thread."""
        self.scheduler.check_length(len(request.prompt_ids))
        check_numbers(request, self.vocab_size)
        check_images(request, sees=self.sees)

    def steps(
        self,
        *requests: GenerationRequest,
        hooks: Mapping[str, Functions] | None = None,
        keep: int = 0,
    ) -> Steps:
        """Run requests to their end, one step at a time; leaving the loop cancels them.

        `hooks`, by request id, look at activations; the last `keep` steps can be taken back
        (`stepping.py`). Raises `InvalidRequest` when the first step is asked for.
        """
        return Steps(self, requests, hooks, keep)

    def shown(self, number: int, outputs: list[Output]) -> Step:
        """The latest step, to be looked at."""
        assert self.batch is not None
        logits = self.logits
        if logits is not None and self.runner.graphs is not None:
            logits = logits.clone()  # a graph writes where it wrote before
        with self._lock:
            return Step(number, self.batch, outputs, logits, page_map(self.scheduler))

    def restore(self, scheduler: Scheduler, batch: Batch | None) -> None:
        """Go on from another state of the scheduler (`undo.py`), after the step `batch`."""
        with self._lock:
            self.scheduler, self.cache, self.pool = scheduler, scheduler.cache, scheduler.cache.pool
            self.batch, self.logits = batch, None
            self.hooks.reopen(scheduler.sequences)

    def run(
        self, request: GenerationRequest, hooks: Functions | None = None
    ) -> tuple[list[Token], Finish]:
        """One request to its end. Raises `InvalidRequest`, or `GenerationFailed` with the cause."""
        steps = self.steps(request, hooks={request.id: hooks} if hooks else None)
        said = [each for step in steps for each in step.outputs if each.request_id == request.id]
        tokens = [each for each in said if isinstance(each, Token)]
        (finish,) = (each for each in said if isinstance(each, Finish))
        if finish.reason is FinishReason.ERROR:
            raise GenerationFailed(finish.error)
        return tokens, finish

    def generate(
        self,
        prompt_ids: Ids[int],
        *,
        max_tokens: int,
        sampling: SamplingParams = GREEDY,
        end_ids: frozenset[int] = frozenset(),
        hooks: Functions | None = None,
    ) -> list[Token]:
        """The tokens of one prompt, the end id included; greedy unless told otherwise.

        `hooks` look at its activations (`watching.py`). Raises what `run` raises.
        """
        request = GenerationRequest(
            secrets.token_hex(8), prompt_ids, max_tokens, end_ids=end_ids, sampling=sampling
        )
        tokens, _ = self.run(request, hooks)
        return tokens

    def _compute_one_by_one(self, batch: Batch) -> list[Output]:
        """What is left of a step that failed: each sequence alone; one that fails again ends."""
        logger.exception(
            "a step of %d sequences failed; each is tried alone", len(batch.context_lens)
        )
        outputs: list[Output] = []
        self.logits = None
        for part in batch.split():
            try:
                logits = self.runner.run(part)
                tokens = self.sampler.sample(logits, self.scheduler.sampling(part))
            except Exception as error:
                with self._lock:
                    outputs += self.scheduler.fail(part, f"{type(error).__name__}: {error}")
            else:
                with self._lock:
                    outputs += self.scheduler.commit(part, tokens)
        return outputs
