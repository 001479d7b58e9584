"""The latest requests that were traced, in memory: of each tenant so many, and so many bytes.

Within the bounds of `latest.py`; nothing of them goes to a disk or a log. What is in one:
`recording.py`; what a reader gets: `tracing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from minimsg.errors import NotFound
from minimsg.protocol.dialect import Dialect
from minimsg.server.latest import Latest

if TYPE_CHECKING:
    from minimsg.server.recording import Recording

HEADER: Final = "minimsg-trace"  # `1`: trace this request
ASKED: Final = 16  # of a tenant, where only what a header asks for is traced
MAX_BYTES: Final = 128 << 20  # of a tenant
MAX_TENANTS: Final = 16


class Records:
    """Recordings by tenant and id, the latest last."""

    def __init__(self, most: int, *, max_bytes: int = MAX_BYTES) -> None:
        """Every request is traced, and `most` of them kept; 0: only those that ask for it."""
        self.traces_all = most > 0
        self._max_bytes = max_bytes
        self._kept: Latest[Recording] = Latest(
            lambda recording: recording.num_bytes,
            max_bytes=max_bytes,
            max_tenants=MAX_TENANTS,
            max_values=most or ASKED,
        )

    def wants(self, headers: Mapping[str, str], dialect: Dialect) -> bool:
        """Whether a request is to be traced; strict knows no header of ours."""
        return self.traces_all or (not dialect.is_strict and headers.get(HEADER) == "1")

    def keep(self, recording: Recording) -> None:
        """One more has ended; the oldest of its tenant go. One that is too big is not kept."""
        if recording.num_bytes <= self._max_bytes:
            self._kept.keep(recording.tenant, recording.generation.id, recording)

    def of(self, tenant: str) -> list[Recording]:
        """Those of `tenant`, the latest first."""
        return list(self._kept.of(tenant).values())[::-1]

    def find(self, tenant: str, id: str) -> Recording:
        """That of `tenant` with this id. Raises NotFound."""
        try:
            return self._kept.of(tenant)[id]
        except KeyError:
            raise NotFound("No record of such a request; it was not traced, or has gone.") from None
