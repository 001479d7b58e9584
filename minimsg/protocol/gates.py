"""Fields and kinds that exist only under an API version, a beta, a profile or with a model.

A gated field is checked in the raw JSON, before types: the hosted API answers
`context_management: Extra inputs are not permitted` whatever the field holds, and of a kind
of thinking that the model does not know it says which it does. Profile `compat` opens every
gate but those that a configuration closes. Knows paths, not what the fields mean
(`request.py`). Source: Messages API reference, beta headers; Claude Code 2.1.332, which
reads the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from minimsg.errors import InvalidRequest
from minimsg.protocol.dialect import OLD, Dialect

Gate = Callable[[Dialect], bool]


def beta(*names: str) -> Gate:
    """Open in compat, and to requests that ask for one of these betas."""
    return lambda dialect: not dialect.is_strict or dialect.has_beta(*names)


def _old_version(dialect: Dialect) -> bool:
    return not dialect.is_strict or dialect.version == OLD


def _extension(dialect: Dialect) -> bool:
    return not dialect.is_strict


def _context_management(dialect: Dialect) -> bool:
    asked = beta("context-management-2025-06-27", "compact-2026-01-12")
    return dialect.can("context-management") and asked(dialect)


def _always(dialect: Dialect) -> bool:
    return True


def _adaptive(dialect: Dialect) -> bool:
    return dialect.takes("adaptive-thinking")


GATES: Final[dict[str, Gate]] = {
    # API version
    "temperature": _old_version,
    "top_p": _old_version,
    "top_k": _old_version,
    # betas
    "billing_policy": beta("user-profiles-billing-2026-10-01"),
    "compaction": beta("compact-2026-09-04"),
    "context_management": _context_management,
    "fallback_credit_token": beta("fallback-credit-2026-06-01", "fallback-credit-2026-07-01"),
    "fallbacks": beta("server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01"),
    "mcp_servers": beta("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15"),
    "messages.*.clear_at": beta("mid-conversation-system-clear-at-2026-08-21"),
    "messages.*.output_config": beta(
        "per-turn-control-2026-07-01", "mid-conversation-output-config-2026-07-01"
    ),
    "output_config.task_budget": beta("task-budgets-2026-03-13"),
    "output_format": beta("structured-outputs-2025-11-13"),
    "thinking.block_binding": beta("thinking-binding-controls-2026-08-01"),
    # extensions
    "bill": _extension,
    "chat_template_kwargs": _extension,
    "seed": _extension,
}

THINKING: Final[dict[str, Gate]] = {
    "enabled": _always,
    "disabled": _always,
    "adaptive": _adaptive,
    "between_tools": _adaptive,
}


def check_gates(data: object, dialect: Dialect) -> None:
    """Refuse a field or a kind in `data` whose gate is closed. Raises InvalidRequest."""
    _check_kind_of_thinking(data, dialect)
    for pattern, is_open in GATES.items():
        if is_open(dialect):
            continue
        for path in _places(data, pattern.split(".")):
            raise InvalidRequest(path, "Extra inputs are not permitted")


def _check_kind_of_thinking(data: object, dialect: Dialect) -> None:
    """Clients read the words: told of 'enabled' and 'disabled' only, they ask for a budget."""
    thinking = data.get("thinking") if isinstance(data, dict) else None
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    known = [f"'{name}'" for name, is_open in THINKING.items() if is_open(dialect)]
    if isinstance(kind, str) and kind in THINKING and not THINKING[kind](dialect):
        why = f"Input tag '{kind}' found using 'type' does not match any of the expected tags"
        raise InvalidRequest("thinking", f"{why}: {', '.join(known)}")


def _places(data: object, pattern: list[str]) -> Iterator[str]:
    """The paths in `data` that `pattern` fits; `*` stands for any place in a list."""
    name, *rest = pattern
    if name == "*":
        inside = [(str(n), item) for n, item in enumerate(data)] if isinstance(data, list) else []
    else:
        inside = [(name, data[name])] if isinstance(data, dict) and name in data else []
    for step, value in inside:
        if not rest:
            yield step
        else:
            yield from (f"{step}.{path}" for path in _places(value, rest))
