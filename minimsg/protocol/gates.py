"""Fields and kinds that exist only under an API version, a beta, a profile or with a model.

Both are checked in the raw JSON, before types: the hosted API answers
`context_management: Extra inputs are not permitted` whatever the field holds, and of a kind
that it does not know it says which it does. Profile `compat` opens every gate but those
that a configuration closes. Knows paths, not what fields mean (`request.py`). Source:
Messages API reference, beta headers; Claude Code 2.1.332, which reads the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, get_args

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import ContentBlock
from minimsg.protocol.dialect import OLD, Dialect
from minimsg.protocol.options import Edit, Thinking
from minimsg.protocol.tool_changes import AddedTool
from minimsg.protocol.tools import Tool

Gate = Callable[[Dialect], bool]


def beta(*names: str) -> Gate:
    """Open in compat, and to requests that ask for one of these betas."""
    return lambda dialect: not dialect.is_strict or dialect.has_beta(*names)


def _old_version(dialect: Dialect) -> bool:
    return not dialect.is_strict or dialect.version == OLD


def _extension(dialect: Dialect) -> bool:
    return not dialect.is_strict


def _context_management(dialect: Dialect) -> bool:
    return dialect.can("context-management") and _edits(dialect)


def _adaptive(dialect: Dialect) -> bool:
    return dialect.takes("adaptive-thinking") and dialect.takes("thinking")


_edits = beta("context-management-2025-06-27", "compact-2026-01-12")
_mcp = beta("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15")
_fallbacks = beta("server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01")
_tool_changes = beta("mid-conversation-tool-changes-2026-07-01")
_advisor = beta("advisor-tool-2026-03-01")

FIELDS: Final[dict[str, Gate]] = {
    # API version
    "temperature": _old_version,
    "top_p": _old_version,
    "top_k": _old_version,
    # betas
    "billing_policy": beta("user-profiles-billing-2026-10-01"),
    "compaction": beta("compact-2026-09-04"),
    "context_management": _context_management,
    "fallback_credit_token": beta("fallback-credit-2026-06-01", "fallback-credit-2026-07-01"),
    "fallbacks": _fallbacks,
    "mcp_servers": _mcp,
    "messages.*.clear_at": beta("mid-conversation-system-clear-at-2026-08-21"),
    "messages.*.output_config": beta(
        "per-turn-control-2026-07-01", "mid-conversation-output-config-2026-07-01"
    ),
    "output_config.task_budget": beta("task-budgets-2026-03-13"),
    "output_format": beta("structured-outputs-2025-11-13"),
    "thinking.<type>.block_binding": beta("thinking-binding-controls-2026-08-01"),
    # extensions
    "bill": _extension,
    "chat_template_kwargs": _extension,
    "seed": _extension,
}

KINDS: Final[dict[str, tuple[Any, dict[str, Gate]]]] = {
    "thinking": (Thinking, {"adaptive": _adaptive, "between_tools": _adaptive}),
    "context_management.edits.*": (Edit, {"compact_20260112": beta("compact-2026-01-12")}),
    "tools.*": (
        Tool,
        {
            "advisor_20260301": _advisor,
            "bash_20241022": beta("computer-use-2024-10-22"),
            "computer_20241022": beta("computer-use-2024-10-22"),
            "computer_20250124": beta("computer-use-2025-01-24"),
            "computer_20251124": beta("computer-use-2025-11-24"),
            "mcp_toolset": beta("mcp-client-2025-11-20", "mcp-client-2026-09-15"),
            "text_editor_20241022": beta("computer-use-2024-10-22"),
        },
    ),
    "messages.*.content.*": (
        ContentBlock,
        {
            "advisor_tool_result": _advisor,
            "compaction": beta("compact-2026-01-12", "compact-2026-09-04"),
            "fallback": _fallbacks,
            "mcp_tool_listing": beta("mcp-client-2026-09-15"),
            "mcp_tool_result": _mcp,
            "mcp_tool_use": _mcp,
            "tool_addition": _tool_changes,
            "tool_removal": _tool_changes,
        },
    ),
    "messages.*.content.*.tool": (AddedTool, {"tool_definition": beta("inline-tools-2026-09-15")}),
}
"""Place -> the union that stands there, and of its kinds those that have a gate."""


def check_gates(data: object, dialect: Dialect) -> None:
    """Refuse a field or a kind in `data` whose gate is closed. Raises InvalidRequest."""
    for pattern, is_open in FIELDS.items():
        if not is_open(dialect) and _values(data, pattern):
            path, _ = next(_places(data, pattern.split(".")))
            raise InvalidRequest(path, "Extra inputs are not permitted")
    for pattern, (union, gates) in KINDS.items():
        closed = {kind for kind, is_open in gates.items() if not is_open(dialect)}
        if closed and any(_kind(value) in closed for value in _values(data, pattern)):
            places = _places(data, pattern.split("."))
            path, value = next(place for place in places if _kind(place[1]) in closed)
            _refuse_kind(path, _kind(value), [tag for tag in tags_of(union) if tag not in closed])


def _refuse_kind(path: str, kind: str, known: list[str]) -> None:
    """Claude Code asks for a budget to think instead when it reads the second sentence."""
    tags = ", ".join(f"'{tag}'" for tag in known)
    why = f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
    hint = f". {kind} thinking is not supported on this model" if path == "thinking" else ""
    raise InvalidRequest(path, why + hint)


def tags_of(union: Any) -> list[str]:
    """The values of `type` by which the members of a union are told."""
    members = get_args(get_args(union)[0])
    return [
        tag
        for member in members
        for tag in get_args(member.model_fields["type"].annotation)
        if tag is not None
    ]


def _kind(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def _values(data: object, pattern: str) -> list[object]:
    """What stands in `data` where `pattern` fits; there can be 100,000 places, so none is named.

    `*` stands for any place in a list, `<type>` for the kind of the object that is reached,
    which is a step of the paths that types report.
    """
    values = [data]
    for name in pattern.split("."):
        if name == "*":
            values = [item for value in values if isinstance(value, list) for item in value]
        elif name != "<type>":
            values = [value[name] for value in values if isinstance(value, dict) and name in value]
    return values


def _places(data: object, pattern: list[str]) -> Iterator[tuple[str, object]]:
    """The same, each with its path."""
    name, *rest = pattern
    inside: list[tuple[str, object]] = []
    if name == "*" and isinstance(data, list):
        inside = [(str(index), item) for index, item in enumerate(data)]
    elif name == "<type>":
        inside = [(_kind(data), data)]
    elif isinstance(data, dict) and name in data:
        inside = [(name, data[name])]
    for step, value in inside:
        if not rest:
            yield step, value
        else:
            yield from ((f"{step}.{path}", part) for path, part in _places(value, rest))
