"""The engine's nouns, one screen each: what goes in, what runs, what comes out.

Plain Python, no torch: scheduling can be read, tested and drawn without a tensor,
and a `Batch` can be sent to another process. The only engine module that the
protocol half may import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Ids
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, Literal, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next id is drawn from the logits. Temperature 0 is exact greedy."""

    temperature: float = 1.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    repetition_penalty: float = 1.0  # CTRL (arXiv 1909.05858) section 4.1; 1: off
    seed: int | None = None  # None: a fresh one for the request
    top_logprobs: int = 0  # alternatives reported with each token


@dataclass(frozen=True, slots=True)
class BitMask:
    """A set of ids: `i` is in it if bit `i % 8` of byte `i // 8` is 1; an id beyond is not."""

    bits: bytes

    def __and__(self, other: BitMask) -> BitMask:
        """The ids that are in both."""
        size = min(len(self.bits), len(other.bits))
        return BitMask((self._number(size) & other._number(size)).to_bytes(size, "little"))

    def __or__(self, other: BitMask) -> BitMask:
        """The ids that are in either."""
        size = max(len(self.bits), len(other.bits))
        return BitMask((self._number(size) | other._number(size)).to_bytes(size, "little"))

    def ids(self) -> list[int]:
        """The ids in it, in order."""
        bits = f"{self._number(len(self.bits)):b}"[::-1]
        return [id for id, bit in enumerate(bits) if bit == "1"]

    def _number(self, size: int) -> int:
        return int.from_bytes(self.bits[:size], "little")


class TokenHook(Protocol):
    """What may constrain one sequence: a grammar, a thinking budget, a tape."""

    def mask(self) -> Ids[int] | BitMask | None:
        """The only ids allowed next, or None for all."""

    def forced(self) -> int | None:
        """The id that must come next without sampling, or None."""

    def advance(self, id: int) -> None:
        """`id` was committed."""

    def rollback(self, n: int) -> None:
        """The last `n` committed ids were taken back."""


@runtime_checkable
class NamedHook(Protocol):
    """A hook that says in a word who it is."""

    @property
    def name(self) -> str:
        """Of several at once, those who say something of the next id."""


HOUR_S: Final = 3600  # the longer of the two times that an entry can be kept


@dataclass(frozen=True, slots=True)
class CacheMark:
    """A place in a prompt: what is before it is to be kept for later prompts (`entries.py`)."""

    num_tokens: int  # of the prompt that belong to the entry, whatever may follow them
    ttl_s: int  # seconds that the entry lives, counted from its last use
    earlier: tuple[int, ...] = ()  # lengths of older entries to look for, longest first


@dataclass(frozen=True, slots=True)
class ImageSpan:
    """The pad ids that stand for one image, row by row: `ids[start:stop]`."""

    start: int
    stop: int
    digest: bytes  # SHA-256 of the preprocessed pixels and the grid, made by the server
    rows: int = 1  # of tokens; with `columns` as many as there are ids
    columns: int = 1
    pixels: bytes = field(default=b"", repr=False)  # red, green, blue; what the model's tower sees


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """The tokens of a prompt by what the cache did with them."""

    read: int = 0  # of the longest entry that a mark found
    written_5m: int = 0  # after it, up to the last mark: entries of five minutes,
    written_1h: int = 0  # and of an hour
    reused: int = 0  # not computed again, marked or not; whole pages


class Priority(IntEnum):
    """Who goes first. Within one priority it is who came first."""

    INTERACTIVE = 0
    BACKGROUND = 1  # message batches: runs on what interactive work leaves


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Token ids and sampling: all that the engine knows of a request."""

    id: str  # made by the server, unique among running requests
    prompt_ids: Ids[int]  # at least one
    max_tokens: int  # ids to generate at most, end id included; 0 only fills the cache
    end_ids: frozenset[int] = frozenset()  # ids that end the turn
    sampling: SamplingParams = SamplingParams()
    tenant: str = "local"  # whose cache entries may be shared
    hook: TokenHook | None = None
    marks: tuple[CacheMark, ...] = ()  # in order of length
    images: tuple[ImageSpan, ...] = ()  # in order of place
    passages: tuple[tuple[int, int], ...] = ()  # spans of ids that tokens say how they attend to
    priority: Priority = Priority.INTERACTIVE
    is_traced: bool = False  # its steps are told, and more of its tokens


class FinishReason(StrEnum):
    """The engine's why; `protocol/message.py` maps it to the API's `stop_reason`."""

    END = "end"  # an end id was sampled
    LENGTH = "length"  # max_tokens ids were generated
    CONTEXT = "context"  # the context window is full
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the cache holds of a prompt: said first, and again if pressure has changed it."""

    request_id: str
    counts: CacheCounts


Change = Literal["admitted", "preempted", "retried"]  # what became of a sequence before a step


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step has computed positions `start` to `stop` of a traced request, its drafts included.

    Said before the tokens of that step. `pages` hold these positions; with a `change`, all
    before `stop`.
    """

    request_id: str
    number: int  # of the engine's steps
    started: float  # time.monotonic
    took_s: float
    start: int
    stop: int
    num_sequences: int  # of the whole batch
    num_tokens: int
    pages: list[int]
    change: Change | None
    layer_errors: tuple[float, ...] | None = None  # if its kernel was checked (`kernel_check.py`)


@dataclass(frozen=True, slots=True)
class Checks:
    """The steps whose kernel was checked: of each layer the largest error, inf for no number."""

    num_steps: int
    latest: tuple[float, ...]  # in the last one that was checked
    worst: tuple[float, ...]  # in all of them


@dataclass(frozen=True, slots=True)
class Choice:
    """What a token of a traced request was chosen from."""

    entropy: float  # nats, of the model's own distribution (before temperature and hook)
    allowed: float | None  # share of the ids that the hook left; None without a hook
    forced_by: str | None  # the hook's name, if it left one id


@dataclass(frozen=True, slots=True)
class Token:
    """One committed id of one request."""

    request_id: str
    id: int
    logprob: float  # natural log, of the model's own distribution (before temperature)
    top: tuple[tuple[int, float], ...] = ()  # (id, logprob), likeliest first
    attended: tuple[float, ...] = ()  # attention paid to each of the request's passages, 0 to 1
    choice: Choice | None = None  # of a traced request


@dataclass(frozen=True, slots=True)
class Finish:
    """The last thing that is ever said of a request; follows its last `Token`."""

    request_id: str
    reason: FinishReason
    error: str | None = None  # with ERROR: the cause
    is_broken: bool = False  # its numbers are wrong: so may be what it has read or computed


Sampled = Token | Finish  # what comes of a row that samples
Output = Admitted | Stepped | Sampled


@dataclass(slots=True, eq=False)
class Watched:
    """Functions that look at a sequence's activations (`watching.py`), and what came of it."""

    functions: Mapping[str, Callable[..., object]]  # by point
    first: int = 0  # the first position whose row they want: it and all after it are computed
    is_patched: bool = False  # a row was changed: no page that is filled from now on is shared
    error: str | None = None  # what one of them raised: the sequence ends with it
    is_over: bool = False  # the sequence has ended
    attended: Callable[[], tuple[float, ...]] | None = None  # what the next token has attended to


@dataclass(slots=True, eq=False)  # compared by identity: two may hold equal ids
class Sequence:
    """A request's running state.

    Invariant: keys and values of `ids[:num_computed]` lie in the pages of
    `page_table`, token i in slot `page_table[i // page_size] * page_size + i % page_size`;
    those of drafts lie behind.
    """

    request: GenerationRequest
    ids: list[int]  # prompt, then what was generated
    num_computed: int = 0
    drafts: list[int] = field(default_factory=list)  # that may come next, in this step
    num_ahead: int = 0  # ids that its hook has taken in, and that are not committed yet
    page_table: list[int] = field(default_factory=list)
    num_published: int = 0  # the first pages of the table, which others may use too
    num_taken: int = 0  # the first of those, which it never had to compute
    num_reached: int = 0  # the most of the ids that ever were computed
    counts: CacheCounts | None = None  # of the prompt; None: to be counted when it starts
    is_started: bool = False  # a step of it was computed: its counts stand
    is_retried: bool = False  # it was begun anew, without what others had computed
    change: Change | None = "admitted"  # since its latest step
    arrival: int = 0  # a number that grows
    since: float = 0.0  # when it arrived, by the clock of the cache's entries
    watched: Watched | None = None  # if anybody looks at its activations

    @property
    def num_generated(self) -> int:
        """Ids committed after the prompt."""
        return len(self.ids) - len(self.request.prompt_ids)

    @property
    def num_pending(self) -> int:
        """Known ids whose keys and values are not computed: 1 while decoding."""
        return len(self.ids) - self.num_computed

    def _repr_html_(self) -> str:
        from minimsg.show.batches import show_sequence

        return show_sequence(self)


@dataclass(frozen=True, slots=True)
class PictureRows:
    """Rows `row : row + count` of a batch stand for an image's tokens from `first` on."""

    tenant: str
    image: ImageSpan
    row: int
    first: int
    count: int

    def within(self, rows: range, shift: int = 0) -> PictureRows | None:
        """What of it lies in some rows of the batch, which are counted from `shift` on then."""
        start, stop = max(self.row, rows.start), min(self.row + self.count, rows.stop)
        if start >= stop:
            return None
        first = self.first + start - self.row
        return PictureRows(self.tenant, self.image, start - rows.start + shift, first, stop - start)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step runs: a flattened mix of decode rows and prefill chunks.

    Axes: B sequences, T new tokens of all of them, S rows that sample (DESIGN.md 6).
    Sequence b owns rows `query_starts[b] : query_starts[b + 1]`. Only ints, lists and an
    image's bytes, so that another rank can receive it.
    """

    request_ids: list[str]  # (B,)
    input_ids: list[int]  # (T,)
    positions: list[int]  # (T,)
    slots: list[int]  # (T,) where each new key and value goes
    query_starts: list[int]  # (B + 1,)
    context_lens: list[int]  # (B,) tokens in the cache after this step
    page_tables: list[list[int]]  # (B, ragged)
    sample_rows: list[int]  # (S,) rows of T whose logits are wanted
    sample_ids: list[str]  # (S,) the request of each of them
    axes: list[list[int]] = field(default_factory=list)  # (3, T) rotary positions, or none:
    pictures: list[PictureRows] = field(default_factory=list)  # where no sequence has images

    @property
    def rows(self) -> dict[str, range]:
        """Which of the T rows are whose, by request."""
        rows = map(range, self.query_starts, self.query_starts[1:])
        return dict(zip(self.request_ids, rows, strict=True))

    @property
    def spans(self) -> dict[str, range]:
        """Which positions of its ids each request has computed."""
        ends = zip(self.rows.items(), self.context_lens, strict=True)
        return {id: range(end - len(rows), end) for (id, rows), end in ends}

    def pictures_within(self, rows: range, shift: int = 0) -> list[PictureRows]:
        """The pictures of some rows, as those of a batch in which the rows begin at `shift`."""
        parts = (picture.within(rows, shift) for picture in self.pictures)
        return [part for part in parts if part is not None]

    def _repr_html_(self) -> str:
        from minimsg.show.batches import show_batch

        return show_batch(self)

    def split(self) -> list[Batch]:
        """The same work as one batch for each sequence."""
        return [self._of(index) for index in range(len(self.request_ids))]

    def _of(self, index: int) -> Batch:
        start, stop = self.query_starts[index : index + 2]
        samples = zip(self.sample_rows, self.sample_ids, strict=True)
        own = [(row - start, request_id) for row, request_id in samples if start <= row < stop]
        return Batch(
            request_ids=[self.request_ids[index]],
            input_ids=self.input_ids[start:stop],
            positions=self.positions[start:stop],
            slots=self.slots[start:stop],
            query_starts=[0, stop - start],
            context_lens=[self.context_lens[index]],
            page_tables=[self.page_tables[index]],
            sample_rows=[row for row, _ in own],
            sample_ids=[request_id for _, request_id in own],
            axes=[axis[start:stop] for axis in self.axes],
            pictures=self.pictures_within(range(start, stop)),
        )
