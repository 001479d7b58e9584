"""Rows: how long the reply may be, how it ends, how it is drawn, and what count_tokens takes."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, OK, Json, Row, ask, text, tool

ENABLED: Final[Json] = {"type": "enabled", "budget_tokens": 1024}
SMALL_BUDGET: Final = "`max_tokens` must be greater than `thinking.budget_tokens`"
BLANK: Final = "stop_sequences: each stop sequence must contain non-whitespace"


def nothing(wish: str) -> str:
    return f"max_tokens: 0 only fills the cache and cannot be combined with `{wish}`"


def drawn(meaning: str, name: str, fields: Json, old: str = OK) -> Row:
    """A rule of how a reply is drawn: the newer version has none of it."""
    return Row(meaning, fields, compat=OK, old=old, new=f"{name}: {EXTRA}")


ROWS: Final = (
    # length
    Row(
        "a length is an integer", {"max_tokens": "8"}, "max_tokens: Input should be a valid integer"
    ),
    Row("16.0 is none", {"max_tokens": 16.0}, "max_tokens: Input should be a valid integer"),
    Row("true is none", {"max_tokens": True}, "max_tokens: Input should be a valid integer"),
    Row(
        "a length is not negative",
        {"max_tokens": -1},
        "max_tokens: Input should be greater than or equal to 0",
    ),
    Row("a length above the window", {"max_tokens": 1_000_000}, OK),
    Row(
        "a length above all",
        {"max_tokens": 1_000_001},
        "max_tokens: 1000001 > 1000000, which is the maximum allowed number of output tokens for m",
    ),
    Row(
        "a length of 26 digits",
        {"max_tokens": 10**25},
        f"max_tokens: {10**25} > 1000000, "
        "which is the maximum allowed number of output tokens for m",
    ),
    Row(
        "no length",
        {"max_tokens": None},
        compat=OK,
        strict="max_tokens: Input should be a valid integer",
    ),
    Row("a length of nothing", {"max_tokens": 0}, OK),
    Row("nothing is not streamed", {"max_tokens": 0, "stream": True}, nothing("stream")),
    Row(
        "nothing has no form",
        {"max_tokens": 0, "output_config": {"format": {"type": "json_schema", "schema": {}}}},
        nothing("output_config.format"),
    ),
    Row(
        "nothing is not forced",
        {"max_tokens": 0, "tools": [tool()], "tool_choice": {"type": "any"}},
        nothing("tool_choice"),
    ),
    Row(
        "nothing with tools",
        {"max_tokens": 0, "tools": [tool()], "tool_choice": {"type": "auto"}},
        OK,
    ),
    Row(
        "nothing takes no thinking",
        {"max_tokens": 0, "thinking": {"type": "adaptive"}},
        nothing("thinking"),
    ),
    Row("nor a budget of it", {"max_tokens": 0, "thinking": ENABLED}, SMALL_BUDGET),
    Row("nothing without thinking", {"max_tokens": 0, "thinking": {"type": "disabled"}}, OK),
    Row("a budget below the length", {"max_tokens": 1025, "thinking": ENABLED}, OK),
    Row("a budget of all the length", {"max_tokens": 1024, "thinking": ENABLED}, SMALL_BUDGET),
    Row(
        "a budget for several replies",
        {"max_tokens": 1024, "thinking": ENABLED},
        OK,
        betas=("interleaved-thinking-2025-05-14",),
    ),
    Row(
        "a budget beyond counting",
        {"max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1 << 63}},
        "thinking.enabled.budget_tokens: Input should be less than or equal to 1000000",
    ),
    # stop sequences
    Row("stop sequences", {"stop_sequences": ["a", " b"]}, OK),
    Row("stop sequences may be null", {"stop_sequences": None}, OK),
    Row("a blank stop sequence", {"stop_sequences": ["a", "\n"]}, BLANK),
    Row("an empty stop sequence", {"stop_sequences": [""]}, BLANK),
    Row(
        "a stop sequence is a string",
        {"stop_sequences": [1]},
        "stop_sequences.0: Input should be a valid string",
    ),
    Row(
        "stop sequences are not endless",
        {"stop_sequences": ["x"] * 8193},
        "stop_sequences: List should have at most 8192 items after validation, not 8193",
    ),
    # drawing
    drawn("a temperature", "temperature", {"temperature": 0.5}),
    drawn("a temperature of zero", "temperature", {"temperature": 0}),
    drawn("the temperature that is the default", "temperature", {"temperature": 1}),
    drawn(
        "a temperature above 1",
        "temperature",
        {"temperature": 1.5},
        "temperature: Input should be less than or equal to 1",
    ),
    Row(
        "a temperature above 2",
        {"temperature": 2.1},
        compat="temperature: Input should be less than or equal to 2",
        old="temperature: Input should be less than or equal to 2",
        new=f"temperature: {EXTRA}",
    ),
    Row(
        "a temperature below 0",
        {"temperature": -0.1},
        compat="temperature: Input should be greater than or equal to 0",
        old="temperature: Input should be greater than or equal to 0",
        new=f"temperature: {EXTRA}",
    ),
    drawn("a share of probability", "top_p", {"top_p": 0.5}),
    Row(
        "a share above 1",
        {"top_p": 1.1},
        compat="top_p: Input should be less than or equal to 1",
        old="top_p: Input should be less than or equal to 1",
        new=f"top_p: {EXTRA}",
    ),
    drawn("a number of tokens", "top_k", {"top_k": 5}),
    Row(
        "a number below 0",
        {"top_k": -1},
        compat="top_k: Input should be greater than or equal to 0",
        old="top_k: Input should be greater than or equal to 0",
        new=f"top_k: {EXTRA}",
    ),
    drawn(
        "temperature and share",
        "temperature",
        {"temperature": 1, "top_p": 1},
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    ),
    drawn(
        "who thinks is as warm as ever",
        "temperature",
        {"max_tokens": 2048, "thinking": ENABLED, "temperature": 0.5},
        "`temperature` may only be set to 1 when thinking is enabled",
    ),
    drawn(
        "a temperature of 1 lets think",
        "temperature",
        {"max_tokens": 2048, "thinking": ENABLED, "temperature": 1},
    ),
    drawn(
        "who thinks draws from nearly all",
        "top_p",
        {"max_tokens": 2048, "thinking": ENABLED, "top_p": 0.9},
        "`top_p` must be at least 0.95 when thinking is enabled",
    ),
    drawn(
        "a share of 0.95 lets think",
        "top_p",
        {"max_tokens": 2048, "thinking": ENABLED, "top_p": 0.95},
    ),
    drawn(
        "who thinks draws from any number",
        "top_k",
        {"max_tokens": 2048, "thinking": ENABLED, "top_k": 5},
        "`top_k` must be unset when thinking is enabled",
    ),
    drawn(
        "who does not think is as cold as asked",
        "temperature",
        {"thinking": {"type": "disabled"}, "temperature": 0},
    ),
)

# Of count_tokens: the field, whether it takes it; what it does not take, compat ignores.
COUNTED: Final[tuple[tuple[str, Json, bool], ...]] = (
    ("system", {"system": "s"}, True),
    ("tools", {"tools": [tool()]}, True),
    ("tool_choice", {"tools": [tool()], "tool_choice": {"type": "none"}}, True),
    ("thinking", {"thinking": {"type": "adaptive"}}, True),
    ("output_config", {"output_config": {"effort": "low"}}, True),
    ("cache_control", {"cache_control": {"type": "ephemeral"}}, True),
    ("speed", {"speed": "standard"}, True),
    ("messages", ask(text("y")), True),
    ("max_tokens", {"max_tokens": 8}, False),
    ("stream", {"stream": True}, False),
    ("temperature", {"temperature": 1}, False),
    ("top_p", {"top_p": 1}, False),
    ("top_k", {"top_k": 1}, False),
    ("metadata", {"metadata": {}}, False),
    ("stop_sequences", {"stop_sequences": ["x"]}, False),
    ("service_tier", {"service_tier": "auto"}, False),
    ("inference_geo", {"inference_geo": "us"}, False),
    ("container", {"container": "c"}, False),
    ("diagnostics", {"diagnostics": {}}, False),
    ("fallbacks", {"fallbacks": "default"}, False),
)
