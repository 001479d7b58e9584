"""Rows: whose turn may hold which block, what comes back in an assistant's turn."""

from __future__ import annotations

from typing import Final

from .row import (
    HI,
    OK,
    SIGNED,
    Row,
    ask,
    assistant,
    call,
    image,
    result,
    search_hits,
    search_result,
    server_call,
    system,
    talk,
    text,
    user,
)

ONLY_ASSISTANT: Final = "blocks can only be in `assistant` messages"

ONLY_USER: Final = "blocks can only be in `user` messages"

ROWS: Final = (
    # roles
    Row(
        "a call is the assistant's",
        ask(call()),
        f"messages.0.content.0: `tool_use` {ONLY_ASSISTANT}",
    ),
    Row(
        "thinking is the assistant's",
        ask(SIGNED),
        f"messages.0.content.0: `thinking` {ONLY_ASSISTANT}",
    ),
    Row(
        "hidden thinking is the assistant's",
        ask({"type": "redacted_thinking", "data": "x"}),
        f"messages.0.content.0: `redacted_thinking` {ONLY_ASSISTANT}",
    ),
    Row(
        "a server's call is the assistant's",
        ask(server_call()),
        f"messages.0.content.0: `server_tool_use` {ONLY_ASSISTANT}",
    ),
    Row(
        "a server's result is the assistant's",
        ask(search_hits()),
        f"messages.0.content.0: `web_search_tool_result` {ONLY_ASSISTANT}",
    ),
    Row(
        "a result is the user's",
        talk(HI, assistant(result())),
        f"messages.1.content.0: `tool_result` {ONLY_USER}",
    ),
    Row(
        "an image is the user's",
        talk(HI, assistant(image())),
        f"messages.1.content.0: `image` {ONLY_USER}",
    ),
    Row(
        "a search result is the user's",
        talk(HI, assistant(search_result()), HI),
        f"messages.1.content.0: `search_result` {ONLY_USER}",
    ),
    Row(
        "a call is not the system's",
        talk(HI, system(call())),
        f"messages.1.content.0: `tool_use` {ONLY_ASSISTANT}",
    ),
    Row(
        "an unknown kind of block",
        ask({"type": "video"}),
        "messages.0.content.0: Input tag 'video' found using 'type' does not match any of the "
        "expected tags: 'text', 'image', 'document', 'search_result', 'thinking', "
        "'redacted_thinking', 'tool_use', 'tool_result', 'container_upload', 'tool_addition', "
        "'tool_removal', 'server_tool_use', 'mcp_tool_use', 'web_search_tool_result', "
        "'web_fetch_tool_result', 'code_execution_tool_result', "
        "'bash_code_execution_tool_result', 'text_editor_code_execution_tool_result', "
        "'tool_search_tool_result', 'advisor_tool_result', 'mcp_tool_result', "
        "'mcp_tool_listing', 'compaction', 'fallback'",
    ),
    # what comes back in an assistant's turn
    Row(
        "hidden thinking comes back",
        talk(HI, assistant({"type": "redacted_thinking", "data": "x"}, text()), HI),
        OK,
    ),
    Row("thinking comes back where nothing thinks", talk(HI, assistant(SIGNED, text()), HI), OK),
    Row(
        "thinking needs a signature",
        talk(HI, assistant({"type": "thinking", "thinking": "hm"}, text()), HI),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    Row(
        "a caller of a call",
        {**talk(HI, assistant(call(caller={"type": "direct"})), user(result()))},
        OK,
    ),
    Row(
        "a caller of an unknown kind",
        talk(HI, assistant(call(caller={"type": "web"})), user(result())),
        "messages.1.content.0.tool_use.caller: Input tag 'web' found using 'type' does not match "
        "any of the expected tags: 'direct', 'code_execution_20250825', 'code_execution_20260120'",
    ),
)
