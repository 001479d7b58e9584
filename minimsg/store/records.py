"""The nouns of the store. Times are seconds since 1970, as the store's clock gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

NotRunKind = Literal["canceled", "expired"]
ResultKind = Literal["succeeded", "errored", NotRunKind]

HOUR_S: Final = 3_600.0
DAY_S: Final = 24 * HOUR_S
BATCH_LIFE_S: Final = DAY_S  # API: what has not begun by then has expired
RESULTS_LIFE_S: Final = 29 * DAY_S  # API: from the batch's creation
MAX_DEATHS: Final = 3  # of servers beneath one request, which may be their cause


@dataclass(frozen=True, slots=True)
class NewItem:
    """One request of a message batch that is being created."""

    custom_id: str
    params: bytes


@dataclass(frozen=True, slots=True)
class Item:
    """A request to run; `dialect` is what its batch was created with.

    `num_deaths`: servers that died while they ran it.
    """

    batch_id: str
    custom_id: str
    tenant: str
    dialect: bytes
    params: bytes
    num_deaths: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """How a request ended; `body` is what `finish_item` was given, None if it never ran."""

    custom_id: str
    kind: ResultKind
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Batch:
    """A message batch. The counts are those of now, whether it has ended or not."""

    id: str
    tenant: str
    dialect: bytes
    created_at: float
    expires_at: float
    cancel_initiated_at: float | None
    ended_at: float | None
    archived_at: float | None  # its results are gone
    num_items: int
    succeeded: int
    errored: int
    canceled: int
    expired: int

    @property
    def num_left(self) -> int:
        """Requests that wait or run."""
        return self.num_items - self.succeeded - self.errored - self.canceled - self.expired


@dataclass(frozen=True, slots=True)
class Figures:
    """What is stored, of all tenants; items are those of batches that were not deleted."""

    left: int  # items that wait or run
    succeeded: int
    errored: int
    canceled: int
    expired: int
    oldest_created_at: float | None  # of the batches that have not ended
    files: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class File:
    """What is known of an uploaded file; `filename` is a client's word and names no path."""

    id: str
    tenant: str
    filename: str
    mime_type: str
    size_bytes: int
    created_at: float
    expires_at: float | None
