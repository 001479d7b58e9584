"""Rows: kinds of thinking, what of it is shown, what of it comes back."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, HI, OK, Json, Row, assistant, call, result, talk, user

ENABLED: Final[Json] = {"type": "enabled", "budget_tokens": 1024}

OLDER: Final = "does not match any of the expected tags: 'enabled', 'disabled'"


def no_kind(kind: str) -> str:
    return (
        f"thinking: Input tag '{kind}' found using 'type' {OLDER}. "
        f"{kind} thinking is not supported on this model"
    )


def thinks(thinking: Json, **fields: object) -> Json:
    return {"max_tokens": 2048, "thinking": thinking, **fields}  # type: ignore[dict-item]


LOOP: Final = talk(HI, assistant(call()), user(result()))

ROWS: Final = (
    Row("thinking with a budget", thinks(ENABLED), OK),
    Row("thinking as much as it takes", thinks({"type": "adaptive"}), OK),
    Row("no thinking", thinks({"type": "disabled"}), OK),
    Row("thinking between tools", thinks({"type": "between_tools"}), OK),
    Row(
        "an unknown kind of thinking",
        thinks({"type": "deep"}),
        "thinking: Input tag 'deep' found using 'type' does not match any of the expected tags: "
        "'enabled', 'adaptive', 'disabled', 'between_tools'",
    ),
    Row("thinking is shown", thinks({**ENABLED, "display": "summarized"}), OK),
    Row("or not", thinks({"type": "adaptive", "display": "omitted"}), OK),
    Row(
        "or as it comes",
        thinks({"type": "adaptive", "display": "updates"}),
        compat=OK,
        strict="thinking.adaptive.display: Input should be 'summarized' or 'omitted'",
    ),
    Row(
        "or as it comes, under its beta",
        thinks({"type": "adaptive", "display": "updates"}),
        OK,
        betas=("thinking-display-updates-2026-08-18",),
    ),
    Row(
        "no thinking is not shown",
        thinks({"type": "disabled", "display": "omitted"}),
        compat=OK,
        strict=f"thinking.disabled.display: {EXTRA}",
    ),
    Row(
        "what binds thinking",
        thinks({**ENABLED, "block_binding": {"prefix_mismatch_behavior": "error"}}),
        compat=OK,
        strict=f"thinking.enabled.block_binding: {EXTRA}",
    ),
    Row(
        "what binds thinking, under its beta",
        thinks({**ENABLED, "block_binding": {"prefix_mismatch_behavior": "error"}}),
        OK,
        betas=("thinking-binding-controls-2026-08-01",),
    ),
    Row(
        "a model that cannot think",
        thinks(ENABLED),
        compat=OK,
        strict='"thinking.type.enabled" is not supported for this model. Leave `thinking` out.',
        lacking=("thinking",),
        unheeded=("thinking",),
    ),
    Row(
        "a model that cannot think as it likes",
        thinks({"type": "adaptive"}),
        compat=OK,
        strict=no_kind("adaptive"),
        lacking=("thinking", "adaptive-thinking"),
        unheeded=("thinking",),
    ),
    Row(
        "nor between tools",
        thinks({"type": "between_tools"}),
        compat=OK,
        strict=no_kind("between_tools"),
        lacking=("thinking", "adaptive-thinking"),
        unheeded=("thinking",),
    ),
    Row(
        "a model that cannot think is told not to",
        thinks({"type": "disabled"}),
        OK,
        lacking=("thinking", "adaptive-thinking"),
    ),
    Row(
        "adaptive thinking is off",
        thinks({"type": "adaptive"}),
        no_kind("adaptive"),
        without=("adaptive-thinking",),
    ),
    Row("thinking with a budget stays", thinks(ENABLED), OK, without=("adaptive-thinking",)),
    Row(
        "thinking is off",
        thinks(ENABLED),
        '"thinking.type.enabled" is not supported for this model. Leave `thinking` out.',
        without=("thinking",),
    ),
    Row(
        "thinking between tools is moderate",
        thinks({"type": "between_tools"}, output_config={"effort": "max"}),
        compat=OK,
        strict="output_config.effort: effort 'max' is not supported with thinking of type "
        "'between_tools'",
    ),
    Row(
        "hidden thinking that is not ours",
        thinks(ENABLED, **talk(HI, assistant({"type": "redacted_thinking", "data": "x"}), HI)),
        compat=OK,
        strict="messages.1.content.0: Invalid `data` in `redacted_thinking` block",
    ),
    Row(
        "a tool loop begins with thinking",
        thinks(ENABLED, **LOOP),
        compat=OK,
        strict="messages.1.content.0.type: Expected thinking or redacted_thinking, but found "
        "tool_use",
    ),
    Row("adaptive thinking does not ask for that", thinks({"type": "adaptive"}, **LOOP), OK),
)
