"""Times as the API writes them. Source: Messages API reference, RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload


@overload
def rfc3339(seconds: float) -> str: ...


@overload
def rfc3339(seconds: float | None) -> str | None: ...


def rfc3339(seconds: float | None) -> str | None:
    """Seconds since 1970 as text, in UTC; None stays None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
