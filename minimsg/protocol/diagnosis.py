"""`diagnostics`: what of a prompt has changed since an earlier one, so that the cache missed it.

Source: Messages API reference, cache diagnosis. What is compared: `prompt/fingerprint.py`.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class Changed(TypedDict):
    """What of the prompt is the first to differ from the earlier one, and the price of that.

    Names of the served model are one model here, so that `model_changed` is never said.
    """

    type: Literal["model_changed", "system_changed", "tools_changed", "messages_changed"]
    cache_missed_input_tokens: int  # of the prompt, from the first id that differs


class NotCompared(TypedDict):
    """The earlier message is not known to this tenant, or its prompt was too long to keep."""

    type: Literal["previous_message_not_found", "unavailable"]


class Diagnosis(TypedDict):
    """The answer to `diagnostics`; null where nothing was missed, or nothing came before."""

    cache_miss_reason: Changed | NotCompared | None
