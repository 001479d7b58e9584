"""Rows: where a system turn may stand and what it may set."""

from __future__ import annotations

from typing import Final

from .row import (
    EXTRA,
    HI,
    MARK,
    OK,
    Row,
    assistant,
    call,
    result,
    server_call,
    system,
    talk,
    text,
    tool,
    user,
)

PER_TURN: Final = ("per-turn-control-2026-07-01",)

CLEAR: Final = ("mid-conversation-system-clear-at-2026-08-21",)

FIRST: Final = 'messages: first message must use the "user" role'

EMPTY: Final = (
    "all messages must have non-empty content except for the optional final assistant message"
)

FOLLOW: Final = "role 'system' must follow a user message"

PRECEDE: Final = "role 'system' must precede an assistant message or be the last message"

ROWS: Final = (
    Row("a system turn after the user, at the end", talk(HI, system(text())), OK),
    Row(
        "a system turn between user and assistant", talk(HI, system(text()), assistant(text())), OK
    ),
    Row("a system turn as a string", talk(HI, {"role": "system", "content": "s"}), OK),
    Row(
        "a system turn in front of all",
        talk(system(text()), HI),
        compat=OK,
        strict=f"{FIRST}; use the top-level 'system' parameter for the initial system prompt",
    ),
    Row("only system turns", talk(system(text())), FIRST),
    Row("a system turn, then the assistant", talk(system(text()), assistant(text())), FIRST),
    Row(
        "a system turn between users",
        talk(HI, system(text()), HI),
        compat=OK,
        strict=f"messages.1: {PRECEDE}",
    ),
    Row(
        "a system turn after the assistant",
        talk(HI, assistant(text()), system(text())),
        compat=OK,
        strict=f"messages.2: {FOLLOW}",
    ),
    Row(
        "two system turns in a row",
        talk(HI, system(text()), system(text())),
        compat=OK,
        strict=f"messages.1: {PRECEDE}",
    ),
    Row(
        "a system turn after a paused turn", talk(HI, assistant(server_call()), system(text())), OK
    ),
    Row(
        "a system turn between call and result",
        {**talk(HI, assistant(call()), system(text()), user(result())), "tools": [tool()]},
        compat=OK,
        strict=f"messages.2: {FOLLOW}",
    ),
    Row("a system turn with a mark", talk(HI, system(text(cache_control=MARK))), OK),
    Row(
        "a system turn has text",
        talk(
            HI,
            system(
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                }
            ),
        ),
        "messages.1.content.0: `document` blocks can only be in `user` or `assistant` messages",
    ),
    Row(
        "system turns are off",
        talk(HI, system(text())),
        "messages.1: role 'system' is not supported on this model",
        without=("system-turns",),
    ),
    Row(
        "system turns are folded where the model has none",
        talk(HI, system(text())),
        compat=OK,
        strict="messages.1: role 'system' is not supported on this model",
        lacking=("system-turns",),
    ),
    Row(
        "the effort of a turn",
        talk(HI, system(text(), output_config={"effort": "low"})),
        compat=OK,
        strict=f"messages.1.output_config: {EXTRA}",
        unheeded=("messages.1.output_config.effort",),
    ),
    Row(
        "the effort of a turn under its beta",
        {
            **talk(HI, system(text(), output_config={"effort": "low"})),
            "thinking": {"type": "adaptive"},
        },
        OK,
        betas=PER_TURN,
    ),
    Row(
        "the effort of a turn where there is none",
        talk(HI, system(text(), output_config={"effort": "low"})),
        compat=OK,
        strict="messages.1.output_config.effort: output_config.effort requires a model that "
        "supports per-turn effort; this model does not",
        betas=PER_TURN,
        lacking=("effort",),
        unheeded=("messages.1.output_config.effort",),
    ),
    Row(
        "an effort without text stands anywhere",
        talk(HI, system(output_config={"effort": "low"}), HI),
        OK,
        betas=PER_TURN,
        unheeded=("messages.1.output_config.effort",),
    ),
    Row(
        "an effort without content",
        talk(HI, {"role": "system", "output_config": {"effort": "low"}}),
        OK,
        betas=PER_TURN,
        unheeded=("messages.1.output_config.effort",),
    ),
    Row("an empty system turn", talk(HI, system()), f"messages.1: {EMPTY}"),
    Row(
        "the effort of a user",
        talk({**HI, "output_config": {"effort": "low"}}),
        compat=OK,
        strict=f"messages.0.output_config: {EXTRA}",
        betas=PER_TURN,
        unheeded=("messages.0.output_config",),
    ),
    Row(
        "a system turn that is cleared",
        talk(HI, system(text(), clear_at="next_user_message")),
        compat=OK,
        strict=f"messages.1.clear_at: {EXTRA}",
    ),
    Row(
        "a system turn that is cleared, under its beta",
        talk(HI, system(text(), clear_at="next_user_message")),
        OK,
        betas=CLEAR,
    ),
    Row(
        "a system turn is cleared at one of two times",
        talk(HI, system(text(), clear_at="now")),
        "messages.1.clear_at: Input should be 'never' or 'next_user_message'",
        betas=CLEAR,
    ),
    Row(
        "what is cleared is not cached",
        talk(HI, system(text(cache_control=MARK), clear_at="next_user_message")),
        "messages.1.content.0.text.cache_control: a message with clear_at cannot be cached",
        betas=CLEAR,
    ),
)
