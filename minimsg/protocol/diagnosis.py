"""`diagnostics`: why the prompt cache was missed, as far as this server can tell.

Source: Messages API reference, cache diagnosis.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from minimsg.protocol.options import Diagnostics


class Unavailable(TypedDict):
    """The earlier message is not remembered."""

    type: Literal["unavailable"]


class Diagnosis(TypedDict):
    """The answer to `diagnostics`; null where there is nothing to compare with."""

    cache_miss_reason: Unavailable | None


def diagnosis_of(asked: Diagnostics | None) -> Diagnosis | None:
    """What can be said to a request that asks; None to any other."""
    if asked is None:
        return None
    is_first = asked.previous_message_id is None
    return {"cache_miss_reason": None if is_first else {"type": "unavailable"}}
