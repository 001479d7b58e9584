"""Plain answers whose usage is wrong: what is counted, and what was cached."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.answers import drop_field, message, set_field
from minimsg.misbehave.mutant import Answered, Asked, mutants


def usage_of(answered: Answered) -> dict[str, Any]:
    """The counts of a message; `{}` for any other answer."""
    usage: dict[str, Any] = message(answered).get("usage", {})
    return usage


def set_usage(answered: Answered, **counts: object) -> None:
    """Change counts of a message."""
    if found := message(answered):
        set_field(answered, "usage", found["usage"] | counts)


def no_usage(asked: Asked, answered: Answered) -> None:
    """A message has no usage."""
    drop_field(answered, "usage")


def usage_text(asked: Asked, answered: Answered) -> None:
    """Counts are texts."""
    set_usage(answered, input_tokens="12")


def nothing_in(asked: Asked, answered: Answered) -> None:
    """The prompt is not counted."""
    set_usage(answered, input_tokens=0, cache_read_input_tokens=0, cache_creation_input_tokens=0)


def nothing_out(asked: Asked, answered: Answered) -> None:
    """The reply is not counted."""
    set_usage(answered, output_tokens=0)


def too_much_out(asked: Asked, answered: Answered) -> None:
    """The reply counts more than max_tokens."""
    set_usage(answered, output_tokens=usage_of(answered).get("output_tokens", 0) + 50)


def cached_twice(asked: Asked, answered: Answered) -> None:
    """input_tokens holds what was cached, too."""
    usage = usage_of(answered)
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    set_usage(answered, input_tokens=sum(usage.get(key) or 0 for key in keys))


def nothing_read(asked: Asked, answered: Answered) -> None:
    """What is read from the cache counts as input."""
    usage = usage_of(answered)
    read = usage.get("cache_read_input_tokens") or 0
    whole = usage.get("input_tokens", 0) + read
    set_usage(answered, input_tokens=whole, cache_read_input_tokens=0)


def always_written(asked: Asked, answered: Answered) -> None:
    """What is read from the cache counts as written again."""
    usage = usage_of(answered)
    keys = ("cache_read_input_tokens", "cache_creation_input_tokens")
    whole = sum(usage.get(key) or 0 for key in keys)
    set_usage(answered, cache_creation_input_tokens=whole, cache_read_input_tokens=0)


def ttl_ignored(asked: Asked, answered: Answered) -> None:
    """What is kept for an hour counts as kept for five minutes."""
    usage = usage_of(answered)
    written = usage.get("cache_creation_input_tokens") or 0
    split = {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
    set_usage(answered, cache_creation=split)


def no_cache_counts(asked: Asked, answered: Answered) -> None:
    """usage has no counts of the cache."""
    usage = usage_of(answered)
    set_field(answered, "usage", {k: v for k, v in usage.items() if "cache" not in k})


MUTANTS: Final = mutants(
    "answer",
    {
        no_usage: "message.*",
        usage_text: "message.*",
        nothing_in: "message.usage*",
        nothing_out: "message.usage*",
        too_much_out: "stop.bound*",
        cached_twice: "caching.s*",
        nothing_read: "caching.read*",
        always_written: "caching.read*",
        ttl_ignored: "caching.written*",
        no_cache_counts: "message.usage*",
    },
)
