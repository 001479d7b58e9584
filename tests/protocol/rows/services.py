"""Rows: services of the hosted API, and extensions of this one."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, OK, Row, result, talk, user

CREDIT: Final = ("fallback-credit-2026-07-01",)

FALLBACK: Final = ("server-side-fallback-2026-07-01",)

MCP: Final = ("mcp-client-2025-11-20",)

NOT_HERE: Final = "not supported for this model"

THREAD: Final = "thread: threads are not supported; send the whole conversation without `thread`"

ROWS: Final = (
    # services
    Row(
        "a thread begins",
        {"thread": {"type": "create"}},
        THREAD,
        error_code="thread_unsupported_request",
    ),
    Row(
        "a thread goes on",
        {
            **talk(user(result("t7"))),
            "thread": {"type": "continue", "previous_message_id": "msg_1"},
        },
        THREAD,
        betas=("message-threads-2026-08-12",),
        error_code="thread_unsupported_request",
    ),
    Row("no thread", {"thread": None}, OK),
    Row(
        "MCP servers",
        {"mcp_servers": [{"type": "url", "name": "s", "url": "https://x.example"}]},
        "mcp_servers: MCP servers are called by the hosted API only",
        betas=MCP,
    ),
    Row("no MCP servers", {"mcp_servers": []}, OK, betas=MCP),
    Row(
        "MCP servers without their beta",
        {"mcp_servers": []},
        compat=OK,
        strict=f"mcp_servers: {EXTRA}",
    ),
    Row("a container", {"container": "c1"}, "container: containers are run by the hosted API only"),
    Row(
        "MCP servers that are left out",
        {"mcp_servers": [{"type": "url", "name": "s", "url": "https://x.example"}]},
        compat=OK,
        strict="mcp_servers: MCP servers are called by the hosted API only",
        betas=MCP,
        drops=True,
        unheeded=("mcp_servers",),
    ),
    Row(
        "a container that is left out",
        {"container": "c1"},
        compat=OK,
        strict="container: containers are run by the hosted API only",
        drops=True,
        unheeded=("container",),
    ),
    Row(
        "a container with skills",
        {"container": {"skills": [{"type": "anthropic", "skill_id": "xlsx"}]}},
        "container: containers are run by the hosted API only",
    ),
    Row("no container", {"container": None}, OK),
    Row(
        "a fast reply",
        {"speed": "fast"},
        compat=OK,
        strict=f"speed: 'fast' is {NOT_HERE}",
        unheeded=("speed",),
    ),
    Row(
        "a place of work",
        {"inference_geo": "us"},
        compat=OK,
        strict=f"inference_geo: {NOT_HERE}",
        unheeded=("inference_geo",),
    ),
    Row("any place of work", {"inference_geo": None}, OK),
    Row(
        "other models, should this one refuse",
        {"fallbacks": "default"},
        compat=OK,
        strict=f"fallbacks: {EXTRA}",
        unheeded=("fallbacks",),
    ),
    Row(
        "other models, under their beta",
        {"fallbacks": [{"model": "n"}]},
        compat=OK,
        strict=f"fallbacks: {NOT_HERE}",
        betas=FALLBACK,
        unheeded=("fallbacks",),
    ),
    Row(
        "a credit",
        {"fallback_credit_token": "t"},
        compat=OK,
        strict=f"fallback_credit_token: {NOT_HERE}",
        betas=CREDIT,
        unheeded=("fallback_credit_token",),
    ),
    Row(
        "who pays",
        {"billing_policy": {"type": "billing_policy", "bill_to": "self"}},
        compat=OK,
        strict=f"billing_policy: {NOT_HERE}",
        betas=("user-profiles-billing-2026-10-01",),
        unheeded=("billing_policy",),
    ),
    Row("why the cache was missed", {"diagnostics": {"previous_message_id": "msg_1"}}, OK),
    Row("the start of such a chain", {"diagnostics": {"previous_message_id": None}}, OK),
    # extensions
    Row(
        "a variable of the template",
        {"chat_template_kwargs": {"enable_thinking": False}},
        compat=OK,
        strict=f"chat_template_kwargs: {EXTRA}",
    ),
    Row(
        "a template that tokenizes",
        {"chat_template_kwargs": {"tokenize": True}},
        compat=f"chat_template_kwargs.tokenize: {EXTRA}; known are enable_thinking, "
        "preserve_thinking, reasoning_effort, thinking",
        strict=f"chat_template_kwargs: {EXTRA}",
    ),
    Row(
        "a template of the client's",
        {"chat_template": "x"},
        compat=OK,
        strict=f"chat_template: {EXTRA}",
    ),
    Row("a seed", {"seed": 7}, compat=OK, strict=f"seed: {EXTRA}"),
    # message batches
    Row(
        "a stream to nobody",
        {"stream": True},
        "stream: is not supported in a message batch",
        count=OK,
        in_batch=True,
    ),
)
