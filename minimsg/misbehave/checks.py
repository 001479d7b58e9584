"""Requests that are wrong and answered, or right and refused."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.misbehave.mutant import Asked, mutants
from minimsg.misbehave.requests import MESSAGES, drop, path


def mend(asked: Asked, key: str, good: Any, value: Any) -> None:
    """Put `value` where a field is not `good`."""
    found = asked.json
    if path(asked) == MESSAGES and key in found and not good(found[key]):
        asked.put(found | {key: value})


def negative_taken(asked: Asked) -> None:
    """A negative max_tokens is read as some default."""
    mend(asked, "max_tokens", lambda n: not isinstance(n, int) or n >= 0, 16)


def types_unchecked(asked: Asked) -> None:
    """max_tokens may be any JSON."""
    mend(asked, "max_tokens", lambda n: isinstance(n, int) and n is not True, 16)


def any_model(asked: Asked) -> None:
    """Every model is the same."""
    if "no-such-model" in str(asked.json.get("model")):
        asked.body = asked.body.replace(b"no-such-model-7421", _model(asked))


def _model(asked: Asked) -> bytes:
    """The name by which the last request was answered."""
    return asked.headers.get("x-served-model", "model").encode()


def broken_json_taken(asked: Asked) -> None:
    """A body that is no JSON is an empty object."""
    if asked.method == "POST" and path(asked) == MESSAGES:
        try:
            json.loads(asked.body)
        except (ValueError, RecursionError):
            model = asked.headers.get("x-served-model", "model")
            turns = [{"role": "user", "content": "-"}]
            asked.put({"model": model, "max_tokens": 1, "messages": turns})


def refuses_temperature(asked: Asked) -> None:
    """temperature is refused."""
    if "temperature" in asked.json:
        asked.put(asked.json | {"temperature": "no"})


def refuses_betas(asked: Asked) -> None:
    """Whoever names a beta is refused."""
    if "anthropic-beta" in asked.headers:
        asked.put({})


def refuses_the_new_version(asked: Asked) -> None:
    """Version 2026-10-21 is refused."""
    if asked.headers.get("anthropic-version") == "2026-10-21":
        asked.put({})


def refuses_the_query(asked: Asked) -> None:
    """A path with a query is not found."""
    asked.path = asked.path.replace("?beta=true", "/beta")


def refuses_metadata(asked: Asked) -> None:
    """metadata is refused."""
    if "metadata" in asked.json:
        asked.put(asked.json | {"metadata": 5})


def refuses_lists(asked: Asked) -> None:
    """system and content must be texts."""
    if isinstance(asked.json.get("system"), list):
        asked.put(asked.json | {"system": 5})


def formats_unchecked(asked: Asked) -> None:
    """A format that is none is not looked at."""
    found = asked.json.get("output_config")
    if isinstance(found, dict) and not _is_format(found.get("format")):
        drop(asked, "output_config")


def _is_format(value: Any) -> bool:
    schema = value.get("schema") if isinstance(value, dict) else None
    return isinstance(schema, dict) and value.get("type") == "json_schema"


MUTANTS: Final = mutants(
    "request",
    {
        negative_taken: "request.bounds*",
        types_unchecked: "request.type*",
        any_model: "request.unknown-model*",
        broken_json_taken: "request.json*",
        refuses_temperature: "*temperature*",
        refuses_betas: "versions.betas*",
        refuses_the_new_version: "versions.accepted*",
        refuses_the_query: "request.beta-query*",
        refuses_metadata: "request.accepted*",
        refuses_lists: "request.accepted*",
        formats_unchecked: "structured.refused*",
    },
)
