"""Ways of published models that their own templates do not show: each is a call, or text, whole."""

from __future__ import annotations

from .splitting import Table, call, text

HERMES_OWN: Table = {
    "a code fence inside the tag": (
        '<tool_call>\n```json\n{"name": "add", "arguments": {"a": 1}}\n```\n</tool_call> ok',
        call("add", '{"a": 1}') + text("ok"),
    ),
    "a code fence inside the tag without an end": (
        '<tool_call>```\n{"name": "now"}\n``',
        call("now", "{}"),
    ),
    "another code inside the tag": (
        "<tool_call>\n```python\nnow()\n```\n</tool_call>",
        text("<tool_call>\n```python\nnow()\n```\n</tool_call>"),
    ),
    "one tick inside the tag": (
        "<tool_call>`now`</tool_call>",
        text("<tool_call>`now`</tool_call>"),
    ),
    "braces doubled around the arguments too": (
        '<tool_call>{{"name": "add", "arguments": {{"a": 1, "x": {}}}}}</tool_call>!',
        call("add", '{"a": 1, "x": {}}') + text("!"),
    ),
    "braces doubled around a call that is held": (
        '<tool_call>{{"name": "held", "arguments": {}}}</tool_call>',
        text('<tool_call>{{"name": "held", "arguments": {}}}</tool_call>'),
    ),
    "a held call inside function": (
        '<tool_call>{"function": {"name": "held", "arguments": {}}}</tool_call>',
        text('<tool_call>{"function": {"name": "held", "arguments": {}}}</tool_call>'),
    ),
    "args": ('<tool_call>{"name": "add", "args": {"a": 1}}</tool_call>', call("add", '{"a": 1}')),
    "input": ('<tool_call>{"name": "add", "input": {"a": 1}}</tool_call>', call("add", '{"a": 1}')),
    "function for name": (
        '<tool_call>{"function": "add", "arguments": {"a": 1}}</tool_call>',
        call("add", '{"a": 1}'),
    ),
    "a list of function objects": (
        '<tool_call>[{"type": "function", "function": {"name": "now", "arguments": "{}"}}]'
        "</tool_call>",
        call("now", "{}"),
    ),
    "a byte order mark": ('<tool_call>\ufeff{"name": "now"}</tool_call>', call("now", "{}")),
    "a name between spaces": (
        '<tool_call>{"name": " now\\n", "arguments": {}}</tool_call>',
        call("now", "{}"),
    ),
    "an empty string of arguments": (
        '<tool_call>{"name": "now", "arguments": ""}</tool_call>',
        call("now", "{}"),
    ),
    "a string of arguments that is no object": (
        '<tool_call>{"name": "now", "arguments": "null"}{"name": "now", "arguments": "[1]; x"}',
        call("now", "{}") * 2,
    ),
    "escaped for HTML": (
        '<tool_call>{"name": "add", "arguments": {"note": "a &lt; b"}}</tool_call>',
        call("add", '{"note": "a &lt; b"}'),
    ),
    "the opening tag is missing": (
        '{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
        call("add", '{"a": 1}'),
    ),
    "no tag at all": ('\n[{"name": "now", "arguments": {}}]', call("now", "{}")),
    "no tag, and not at the start": (
        'Say {"name": "now", "arguments": {}}',
        text('Say {"name": "now", "arguments": {}}'),
    ),
    "JSON that is no call": ('{"name": "now", "age": 3}', text('{"name": "now", "age": 3}')),
    "a list that is no call": ("[1, 2] and [x](y)", text("[1, 2] and [x](y)")),
    "an example in a fence is a call as well": (
        'So:\n```\n<tool_call>{"name": "now"}</tool_call>\n```',
        text("So:\n```") + call("now", "{}") + text("```"),
    ),
    "an example of no tool": (
        'So:\n```\n<tool_call>{"name": "NAME", "arguments": {...}}</tool_call>\n```\n',
        text('So:\n```\n<tool_call>{"name": "NAME", "arguments": {...}}</tool_call>\n```\n'),
    ),
    "tags for parameters": (
        "<tool_call><function=now></function></tool_call>",
        text("<tool_call><function=now></function></tool_call>"),
    ),
    "the name as a key": (
        '<tool_call>{"add": {"a": 1}}</tool_call>',
        text('<tool_call>{"add": {"a": 1}}</tool_call>'),
    ),
    "words as in Python": (
        "<tool_call>{'name': 'add', 'arguments': {'x': [None, True, False,],}}</tool_call>",
        call("add", '{"x": [null, true, false]}'),
    ),
    "closed by an opening": (
        '<tool_call>{"name": "now"}<tool_call>{"name": "now"}<tool_call>',
        call("now", "{}") * 2,
    ),
}
QWEN_XML_OWN: Table = {
    "JSON between the tags": (
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\nok',
        call("add", '{"a": 1}') + text("ok"),
    ),
    "JSON of a tool that is held": (
        '<tool_call>\n{"name": "held"}\n</tool_call>',
        text('<tool_call>\n{"name": "held"}\n</tool_call>'),
    ),
    "JSON of an unknown tool": (
        '<tool_call>\n{"name": "rm"}\n</tool_call>',
        text('<tool_call>\n{"name": "rm"}\n</tool_call>'),
    ),
    "names in quotes": (
        '<tool_call><function="add"><parameter="a">1</parameter></function></tool_call>',
        call("add", '{"a": 1}'),
    ),
    "names with a space": (
        "<function=add >\n<parameter=a >\n1\n</parameter>\n</function>",
        call("add", '{"a": 1}'),
    ),
    "two functions between the tags": (
        "<tool_call><function=now></function>\n<function=now></function></tool_call>",
        call("now", "{}") * 2,
    ),
    "escaped for HTML": (
        "<function=add><parameter=note>\na &lt; b\n</parameter></function>",
        call("add", '{"note": "a &lt; b"}'),
    ),
    "no end at all": (
        "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>",
        call("add", '{"a": 1}'),
    ),
    "names as attributes": (
        '<tool_call>\n<function name="now">\n</function>\n</tool_call>',
        text('<tool_call>\n<function name="now">\n</function>\n</tool_call>'),
    ),
}
LLAMA_OWN: Table = {
    "a list": ('[{"name": "now", "parameters": {}}]', call("now", "{}")),
    "single quotes": ("{'name': 'now', 'parameters': {}}", call("now", "{}")),
    "arguments for parameters": ('{"name": "now", "arguments": {}}', call("now", "{}")),
    "inside function": (
        '{"type": "function", "function": {"name": "add", "parameters": {"a": "1"}}}',
        call("add", '{"a": "1"}'),
    ),
    "a list of Python calls": ("[now()]", text("[now()]")),
}
JSON_OWN: Table = {
    "a bare list": (
        'I look.\n[{"name": "now", "arguments": {}}, {"name": "now", "arguments": {}}]\nok',
        text("I look.") + call("now", "{}") * 2 + text("ok"),
    ),
    "a fence with another word": (
        '```tool_call\n{"name": "now", "arguments": {}}\n```',
        call("now", "{}"),
    ),
    "data in a fence": (
        '```json\n{"name": "Bob", "age": 3}\n```\nhi',
        text('```json\n{"name": "Bob", "age": 3}\n```\nhi'),
    ),
}
