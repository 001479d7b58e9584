"""Rows: fields and their types, what is required, what is unknown, how long it may be."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, HI, OK, Row, ask, call, image, result, talk, text, tool, user

ROWS: Final = (
    Row(
        "the model's name has a character",
        {"model": ""},
        "model: String should have at least 1 character",
    ),
    Row("the model's name has at most 256 characters", {"model": "m" * 256}, OK),
    Row(
        "and not one more", {"model": "m" * 257}, "model: String should have at most 256 characters"
    ),
    Row("the model's name is a string", {"model": 1}, "model: Input should be a valid string"),
    Row(
        "the model's name has no control character",
        {"model": "m\0"},
        "model: String should contain printable characters only",
    ),
    Row("messages are a list", {"messages": "hi"}, "messages: Input should be a valid list"),
    Row("a message is an object", talk(1), "messages.0: Input should be a valid dictionary"),
    Row("a message has a role", talk({"content": "x"}), "messages.0.role: Field required"),
    Row("a message has content", talk({"role": "user"}), "messages.0.content: Field required"),
    Row(
        "roles are three",
        talk({"role": "wizard", "content": "x"}),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    Row("content may be a string", talk({"role": "user", "content": "x"}), OK),
    Row(
        "content is not null",
        talk({"role": "user", "content": None}),
        "messages.0.content: Input should be a valid list",
    ),
    Row(
        "a block is an object", ask("x"), "messages.0.content.0: Input should be a valid dictionary"
    ),
    Row("a block has a type", ask({"text": "x"}), "messages.0.content.0.type: Field required"),
    Row(
        "a block has what its type needs",
        ask({"type": "text"}),
        "messages.0.content.0.text.text: Field required",
    ),
    Row(
        "the text of a block is a string",
        ask(text(1)),
        "messages.0.content.0.text.text: Input should be a valid string",
    ),
    Row(
        "a mark is ephemeral",
        ask(text(cache_control={"type": "eternal"})),
        "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'",
    ),
    Row(
        "a mark lives for 5 minutes or an hour",
        ask(text(cache_control={"type": "ephemeral", "ttl": "1d"})),
        "messages.0.content.0.text.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    Row("a mark may be null", ask(text(cache_control=None)), OK),
    Row(
        "an image is of four kinds",
        ask(image({"type": "base64", "media_type": "image/tiff", "data": "A"})),
        "messages.0.content.0.image.source.base64.media_type: "
        "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    ),
    # unknown fields
    Row("an unknown field of the request", {"n": 2}, compat=OK, strict=f"n: {EXTRA}"),
    Row(
        "an unknown field of a message",
        talk({**HI, "id": "m1"}),
        compat=OK,
        strict=f"messages.0.id: {EXTRA}",
    ),
    Row(
        "a name is no field of a message",
        talk({**HI, "name": "Ada"}),
        compat=OK,
        strict=f"messages.0.name: {EXTRA}",
    ),
    Row(
        "an unknown field of a block",
        ask(text(lang="en")),
        compat=OK,
        strict=f"messages.0.content.0.text.lang: {EXTRA}",
    ),
    Row(
        "an unknown field of a tool",
        {"tools": [tool(parameters={})]},
        compat=OK,
        strict=f"tools.0.custom.parameters: {EXTRA}",
    ),
    Row(
        "an unknown field of a choice",
        {"tools": [tool()], "tool_choice": {"type": "auto", "why": "x"}},
        compat=OK,
        strict=f"tool_choice.auto.why: {EXTRA}",
    ),
    Row(
        "an unknown field of metadata",
        {"metadata": {"session": "s"}},
        compat=OK,
        strict=f"metadata.session: {EXTRA}",
    ),
    Row("betas are a header, no field", {"betas": []}, compat=OK, strict=f"betas: {EXTRA}"),
    Row(
        "engine settings of other servers are unknown",
        {"guided_json": {}, "best_of": 3},
        compat=OK,
        strict=f"guided_json: {EXTRA}",
    ),
    Row("a schema is open", {"tools": [tool(input_schema={"type": "object", "x-any": 1})]}, OK),
    Row(
        "the input of a call is open",
        talk(HI, {"role": "assistant", "content": [call(input={"any": {"x": 1}})]}, user(result())),
        OK,
    ),
    # options
    Row("stream is a boolean", {"stream": "yes"}, "stream: Input should be a valid boolean"),
    Row("system may be a string", {"system": "s"}, OK),
    Row("system may be text blocks", {"system": [text("s")]}, OK),
    Row("system is text", {"system": 7}, "system: Input should be a valid list"),
    Row(
        "system has text blocks only",
        {"system": [text("s"), {"type": "image"}]},
        "system.1: Input tag 'image' found using 'type' "
        "does not match any of the expected tags: 'text'",
    ),
    Row("metadata may name a user", {"metadata": {"user_id": "u" * 256}}, OK),
    Row("metadata may name nobody", {"metadata": {"user_id": None}}, OK),
    Row(
        "a user's name has 256 characters at most",
        {"metadata": {"user_id": "u" * 257}},
        "metadata.user_id: String should have at most 256 characters",
    ),
    Row("service_tier auto", {"service_tier": "auto"}, OK),
    Row("service_tier standard_only", {"service_tier": "standard_only"}, OK),
    Row(
        "service tiers are two",
        {"service_tier": "batch"},
        "service_tier: Input should be 'auto' or 'standard_only'",
    ),
    Row("speeds are two", {"speed": "slow"}, "speed: Input should be 'standard' or 'fast'"),
    Row("speed standard", {"speed": "standard"}, OK),
    Row(
        "an effort of five",
        {"output_config": {"effort": "huge"}},
        "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    ),
    Row("no effort in particular", {"output_config": {"effort": None}}, OK),
    Row("tools are a list", {"tools": {}}, "tools: Input should be a valid list"),
    Row(
        "a schema is an object",
        {"tools": [{"name": "f", "input_schema": "x"}]},
        "tools.0.custom.input_schema: Input should be a valid dictionary",
    ),
    Row(
        "the name of a tool is of letters",
        {"tools": [tool("a b")]},
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    Row("the name of a tool has 128 characters", {"tools": [tool("f" * 128)]}, OK),
    Row(
        "and not one more",
        {"tools": [tool("f" * 129)]},
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    Row(
        "a tool has a name",
        {"tools": [{"input_schema": {"type": "object"}}]},
        "tools.0.custom.name: Field required",
    ),
    Row(
        "a tool has a schema",
        {"tools": [{"name": "f"}]},
        "tools.0.custom.input_schema: Field required",
    ),
    Row(
        "the id of a call is of letters",
        talk(HI, {"role": "assistant", "content": [call("a b")]}),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    Row(
        "the input of a call is an object",
        talk(HI, {"role": "assistant", "content": [call(input="x")]}),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    Row(
        "the name of a called tool has 200 characters at most",
        talk(HI, {"role": "assistant", "content": [call(name="f" * 201)]}),
        "messages.1.content.0.tool_use.name: String should have at most 200 characters",
    ),
    Row(
        "a budget of tokens to think is 1024 or more",
        {"thinking": {"type": "enabled", "budget_tokens": 1023}},
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    Row(
        "a budget is required",
        {"thinking": {"type": "enabled"}},
        "thinking.enabled.budget_tokens: Field required",
    ),
    Row(
        "a choice of four",
        {"tools": [tool()], "tool_choice": {"type": "required"}},
        "tool_choice: Input tag 'required' found using 'type' does not match any of the expected "
        "tags: 'auto', 'any', 'tool', 'none'",
    ),
)
