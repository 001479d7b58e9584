"""`usage`: what a message cost, in tokens.

The whole prompt is input + cache_creation + cache_read, always. `cache_read` is the
longest entry that a mark of `cache_control` found; what the server could reuse beside
that is not in it, unless the server is asked to report all hits as reads.
Source: Messages API reference, response object and prompt caching.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from minimsg.engine.types import CacheCounts


class CacheCreation(TypedDict):
    """Prompt tokens written to the cache, by the time they are kept."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class OutputDetails(TypedDict):
    """What the output tokens were for."""

    thinking_tokens: int


class InputUsage(TypedDict):
    """What the cache did with the tokens of a prompt."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cache_creation: CacheCreation


class Usage(InputUsage):
    """Token counts of a message."""

    output_tokens: int
    output_tokens_details: OutputDetails | None  # null: the model does not think
    server_tool_use: None
    service_tier: Literal["standard", "batch"]
    speed: None
    inference_geo: str


class FinalUsage(TypedDict):
    """The counts of the whole message; they replace those of `message_start`."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cache_creation: NotRequired[CacheCreation]  # if it is no longer that of `message_start`
    output_tokens: int
    output_tokens_details: NotRequired[OutputDetails]  # of a model that thinks


def input_usage(
    num_tokens: int,
    counts: CacheCounts = CacheCounts(),  # noqa: B008  # frozen
    *,
    reports_all_hits: bool = False,
) -> InputUsage:
    """The input side of `usage` for a prompt of `num_tokens`."""
    read = max(counts.read, counts.reused) if reports_all_hits else counts.read
    hour = max(0, counts.read + counts.written_1h - read) if counts.written_1h else 0
    written = max(0, counts.read + counts.written_1h + counts.written_5m - read)
    return {
        "input_tokens": num_tokens - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hour,
            "ephemeral_1h_input_tokens": hour,
        },
    }


def new_usage(input: InputUsage) -> Usage:
    """The usage of a message of which nothing is written yet."""
    return {
        **input,
        "output_tokens": 1,  # provisional, as the hosted API's; message_delta has the count
        "output_tokens_details": None,
        "server_tool_use": None,
        "service_tier": "standard",
        "speed": None,
        "inference_geo": "not_available",
    }


def final_usage(
    input: InputUsage, started: InputUsage, output_tokens: int, thinking_tokens: int | None
) -> FinalUsage:
    """The usage at the end of a message that began with `started`."""
    usage: FinalUsage = {
        "input_tokens": input["input_tokens"],
        "cache_creation_input_tokens": input["cache_creation_input_tokens"],
        "cache_read_input_tokens": input["cache_read_input_tokens"],
        "output_tokens": output_tokens,
    }
    if input["cache_creation"] != started["cache_creation"]:
        usage["cache_creation"] = input["cache_creation"]
    if thinking_tokens is not None:
        usage["output_tokens_details"] = {"thinking_tokens": thinking_tokens}
    return usage
