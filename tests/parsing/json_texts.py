"""Texts with calls that need no tag, and what they are."""

from __future__ import annotations

from .splitting import Table, call, cut_call, text

LLAMA_JSON: Table = {
    "alone": (
        '{"name": "add", "parameters": {"a": 1}}',
        call("add", '{"a": 1}'),
    ),
    "with a type, after white space": (
        '\n{"type": "function", "name": "now", "parameters": {}}',
        call("now", "{}"),
    ),
    "after the tag": (
        '<|python_tag|>{"name": "add", "parameters": {"a": 1}}<|eom_id|>',
        call("add", '{"a": 1}'),
    ),
    "several": (
        '{"name": "now", "parameters": {}}; {"name": "add", "parameters": {"a": 1}}',
        call("now", "{}") + call("add", '{"a": 1}'),
    ),
    "a call, then text": (
        '{"name": "now", "parameters": {}}\nDone.',
        call("now", "{}") + text("Done."),
    ),
    "not at the start": (
        'Say {"name": "now", "parameters": {}}',
        text('Say {"name": "now", "parameters": {}}'),
    ),
    "other JSON": ('{"users": [{"name": "now"}]}', text('{"users": [{"name": "now"}]}')),
    "an unknown name": (
        '{"name": "rm", "parameters": {}}',
        text('{"name": "rm", "parameters": {}}'),
    ),
    "a name and other data": ('{"name": "now", "age": 3}', text('{"name": "now", "age": 3}')),
    "code": ("<|python_tag|>print(1)", text("<|python_tag|>print(1)")),
    "a built-in tool": (
        '<|python_tag|>add.call(a=1, note="say \\"hi\\", or \'bye\')", ok=True)<|eom_id|>',
        call("add", '{"a": 1, "note": "say \\"hi\\", or \'bye\')", "ok": true}'),
    ),
    "a built-in tool, text before it": (
        'I look.\n<|python_tag|>add.call(x=[1, {"b": ")"}], note =\'two\')',
        text("I look.") + call("add", '{"x": [1, {"b": ")"}], "note": "two"}'),
    ),
    "a built-in tool without arguments": ("<|python_tag|>now.call()", call("now", "{}")),
    "a comma behind the last argument": (
        "<|python_tag|>add.call(a=1, ) Done.",
        call("add", '{"a": 1}') + text("Done."),
    ),
    "a built-in tool that is unknown": (
        '<|python_tag|>rm.call(a="x")',
        text('<|python_tag|>rm.call(a="x")'),
    ),
    "a built-in tool that is held": (
        '<|python_tag|>held.call(note="x")',
        text('<|python_tag|>held.call(note="x")'),
    ),
    "a built-in tool whose argument has no name": (
        '<|python_tag|>add.call("x")',
        call("add", "{}"),
    ),
    "a built-in tool whose call breaks in a value": (
        "<|python_tag|>add.call(a=1, b=two) x <|eom_id|>",
        call("add", '{"a": 1}'),
    ),
    "a built-in tool whose call ends in a value": (
        '<|python_tag|>add.call(a=1, note="half',
        call("add", '{"a": 1}'),
    ),
    "an eager built-in tool": (
        '<|python_tag|>write.call(text="half',
        call("write", '{"text": "half"}'),
    ),
    "white space after the tag": (
        '<|python_tag|>\n {"name": "now", "parameters": {}}',
        call("now", "{}"),
    ),
    "a tag alone": ("<|python_tag|>", text("<|python_tag|>")),
}
LLAMA_CUT: Table = {
    "in a value": (
        '<|python_tag|>add.call(a=1, note="half',
        cut_call("add", '{"a": 1, "note": "half'),
    ),
    "in a name": ("<|python_tag|>add.cal", []),
    "in a parameter": ("<|python_tag|>add.call(a=1, no", cut_call("add", '{"a": 1')),
}
JSON: Table = {
    "bare": ('{"name": "add", "arguments": {"a": 1}}', call("add", '{"a": 1}')),
    "bare, without arguments": ('{"name": "now"}', call("now", "{}")),
    "bare after text": (
        'I look.\n  {"name": "now", "arguments": {}}',
        text("I look.") + call("now", "{}"),
    ),
    "fenced": (
        'I look:\n```json\n{"name": "now", "arguments": {}}\n```\nDone.',
        text("I look:") + call("now", "{}") + text("Done."),
    ),
    "fenced without a language, twice": (
        '```\n{"name": "now"}\n```\n```json\n[{"name": "add", "arguments": {"a": 1}}]\n```',
        call("now", "{}") + call("add", '{"a": 1}'),
    ),
    "tagged": ('<tool_call>{"name": "now"}</tool_call>', call("now", "{}")),
    "amid a line": (
        'Say {"name": "now", "arguments": {}} to call.',
        text('Say {"name": "now", "arguments": {}} to call.'),
    ),
    "other JSON": ('{"a": 1,\n{"b": {}}}', text('{"a": 1,\n{"b": {}}}')),
    "other code, then a call": (
        '```python\nprint({})\n```\n{"name": "now"}',
        text("```python\nprint({})\n```") + call("now", "{}"),
    ),
    "other code": ("```json\n[1]\n```\nok", text("```json\n[1]\n```\nok")),
}
