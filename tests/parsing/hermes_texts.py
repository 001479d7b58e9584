"""Texts in the Hermes format, and what they are: the longest table, for models do most here."""

from __future__ import annotations

from .splitting import Table, call, cut_call, text

HERMES: Table = {
    "a pure call": (
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>',
        call("add", '{"a": 1, "b": 2}'),
    ),
    "text, then a call": (
        'Let me see.\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        text("Let me see.") + call("now", "{}"),
    ),
    "a call, then text": (
        '<tool_call>{"name": "now", "arguments": {}}</tool_call>\n\nDone.\n',
        call("now", "{}") + text("Done.\n"),
    ),
    "calls back to back": (
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\n',
        call("now", "{}") + call("add", '{"a": 1}'),
    ),
    "text between calls keeps its place": (
        '<tool_call>{"name": "now"}</tool_call> and <tool_call>{"name": "now"}</tool_call>',
        call("now", "{}") + text("and") + call("now", "{}"),
    ),
    "no arguments at all": ('<tool_call>{"name": "now"}</tool_call>', call("now", "{}")),
    "arguments null": (
        '<tool_call>{"name": "now", "arguments": null}</tool_call>',
        call("now", "{}"),
    ),
    "the end tag is missing": (
        '<tool_call>{"name": "now", "arguments": {}}',
        call("now", "{}"),
    ),
    "the end tag is missing and a call follows": (
        '<tool_call>{"name": "now"}\n<tool_call>{"name": "now"}</tool_call>',
        call("now", "{}") + call("now", "{}"),
    ),
    "the end tag is missing and text follows": (
        '<tool_call>{"name": "now"}\nDone <b>.',
        call("now", "{}") + text("Done <b>."),
    ),
    "a brace too many": (
        '<tool_call>{"name": "add", "arguments": {"a": 1}}}</tool_call>!',
        call("add", '{"a": 1}') + text("!"),
    ),
    "a brace too few": (
        '<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call>!',
        call("add", '{"a": 1}') + text("!"),
    ),
    "doubled braces": (
        '<tool_call>{{"name": "add", "arguments": {"a": 1}}}</tool_call>',
        call("add", '{"a": 1}'),
    ),
    "single quotes and Python's words": (
        "<tool_call>{'name': 'add', 'arguments': {'note': 'say \"hi\"', 'ok': True}}</tool_call>",
        call("add", '{"note": "say \\"hi\\"", "ok": true}'),
    ),
    "arguments first": (
        '<tool_call>{"arguments": {"a": 1, "b": 2}, "name": "add"}</tool_call>',
        call("add", '{"a": 1, "b": 2}'),
    ),
    "parameters for arguments, and other keys": (
        '<tool_call>{"id": 7, "name": "add", "parameters": {"a": 1}, "x": [1, {}]}</tool_call>',
        call("add", '{"a": 1}'),
    ),
    "a string of JSON": (
        r'<tool_call>{"name": "add", "arguments": "{\"a\": 1, \"note\": \"\\n\"}"}</tool_call>',
        call("add", r'{"a": 1, "note": "\n"}'),
    ),
    "a call inside function": (
        '<tool_call>{"type": "function", "function": {"name": "now", "arguments": {}}}</tool_call>',
        call("now", "{}"),
    ),
    "a list": (
        '<tool_call>[{"name": "now", "arguments": {}}, {"name": "now"}]</tool_call>',
        call("now", "{}") + call("now", "{}"),
    ),
    "an empty list": ("<tool_call>[]</tool_call>", text("<tool_call>[]</tool_call>")),
    "tags, braces and quotes in a string": (
        r'<tool_call>{"name": "add", "arguments": {"note": "</tool_call>{\"}<tool_call>"}}'
        "</tool_call>",
        call("add", r'{"note": "</tool_call>{\"}<tool_call>"}'),
    ),
    "a line break in a string": (
        '<tool_call>{"name": "add", "arguments": {"note": "a\nb\t\\d"}}</tool_call>',
        call("add", r'{"note": "a\nb\t\\d"}'),
    ),
    "every kind of value": (
        '<tool_call>{"name": "add", "arguments": {"x": [1.5e3, -0, [], {}, true, false, null,'
        ' "\\ud83d\\ude00 é"]}}</tool_call>',
        call("add", '{"x": [1.5e3, -0, [], {}, true, false, null, "\\ud83d\\ude00 é"]}'),
    ),
    "a comma before the brace": (
        '<tool_call>{"name": "add", "arguments": {"a": 1,},}</tool_call>',
        call("add", '{"a": 1}'),
    ),
    "an unknown name": (
        'x <tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call> y',
        text('x <tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call> y'),
    ),
    "no JSON": ("a <tool_call>now()</tool_call> b", text("a <tool_call>now()</tool_call> b")),
    "no name": (
        '<tool_call>{"arguments": {"a": 1}}</tool_call>',
        text('<tool_call>{"arguments": {"a": 1}}</tool_call>'),
    ),
    "markup in text": (
        "Put `<tool_call>` first and </tool_call> last, not <tool_ or </tool",
        text("Put `<tool_call>` first and </tool_call> last, not <tool_ or </tool"),
    ),
    "markup in text, then a call": (
        'No <tool_call>.\n<tool_call>\n{"name": "now"}\n</tool_call>',
        text("No <tool_call>.") + call("now", "{}"),
    ),
    "a lone end tag": ("Done.\n</tool_call>\n", text("Done.")),
    "two openings": (
        '<tool_call>\n<tool_call>{"name": "now"}</tool_call>',
        text("<tool_call>") + call("now", "{}"),
    ),
    "half an end tag": ('<tool_call>{"name": "now"}\n</tool_', call("now", "{}")),
    "an opening and nothing after a call": (
        '<tool_call>{"name": "now"}</tool_call>\n<tool_call>\n',
        call("now", "{}"),
    ),
    "half an opening": ("a\n<tool_ca", text("a\n<tool_ca")),
    "an opening and nothing": ("a\n<tool_call>\n", text("a\n<tool_call>\n")),
    "half a name": ('<tool_call>{"name": "no', text('<tool_call>{"name": "no')),
    "a second call of the envelope is unknown": (
        '<tool_call>{"name": "now"}\n{"name": "rm"}</tool_call>',
        call("now", "{}") + text('{"name": "rm"}'),
    ),
    "it breaks in a value": (
        '<tool_call>{"name": "add", "arguments": {"a": 1, "b": two}}</tool_call> Done.',
        call("add", '{"a": 1}') + text("Done."),
    ),
    "it breaks before a member": (
        '<tool_call>{"name": "add", "arguments": {oops</tool_call>',
        call("add", "{}"),
    ),
    "it breaks after a number": (
        '<tool_call>{"name": "add", "arguments": {"a": 12 oops',
        call("add", '{"a": 12}'),
    ),
    "it breaks before the arguments": (
        '<tool_call>{"name": "add", oops}</tool_call>\n<tool_call>{"name": "now"}',
        call("add", "{}") + call("now", "{}"),
    ),
    "it ends in a string": (
        '<tool_call>{"name": "add", "arguments": {"a": 1, "note": "half',
        call("add", '{"a": 1}'),
    ),
    "it ends in a number": (
        '<tool_call>{"name": "add", "arguments": {"a": 12',
        call("add", '{"a": 12}'),
    ),
    "an eager tool ends in a string": (
        '<tool_call>{"name": "write", "arguments": {"n": 1, "text": "half',
        call("write", '{"n": 1, "text": "half"}'),
    ),
    "arguments that are no object": (
        '<tool_call>{"name": "add", "arguments": [1, 2]}</tool_call>',
        call("add", "{}"),
    ),
    "a string that is half an object": (
        r'<tool_call>{"name": "add", "arguments": "{\"a\": 1, \"b"}</tool_call>',
        call("add", '{"a": 1}'),
    ),
    "nothing": ("", []),
    "plain text": (" one\ntwo  ", text(" one\ntwo  ")),
    "white space alone": ("\n \n", text("\n \n")),
}
HERMES_CUT: Table = {
    "in a string": (
        '<tool_call>{"name": "add", "arguments": {"a": 1, "note": "half',
        cut_call("add", '{"a": 1, "note": "half'),
    ),
    "in a number": (
        '<tool_call>{"name": "add", "arguments": {"a": 12',
        cut_call("add", "{"),
    ),
    "in a key": (
        '<tool_call>{"name": "add", "arguments": {"a": 1, "no',
        cut_call("add", '{"a": 1'),
    ),
    "after the name": ('<tool_call>{"name": "add"', cut_call("add")),
    "in the name": ('ok <tool_call>{"name": "add', text("ok")),
    "after the opening": ("ok\n<tool_call>\n", text("ok")),
    "in JSON without a tag": ('{"name": "add', text('{"name": "add')),
    "after the input": (
        '<tool_call>{"name": "add", "arguments": {"a": 1}',
        cut_call("add", '{"a": 1}'),
    ),
    "in the end tag": ('<tool_call>{"name": "now"}\n</tool_', call("now", "{}")),
    "in the next opening": ('<tool_call>{"name": "now"}</tool_call>\n<tool_', call("now", "{}")),
    "before the name of the next call": (
        '<tool_call>{"name": "now"}</tool_call>\n<tool_call>\n{"name": "ad',
        call("now", "{}"),
    ),
    "in the next call of a list": (
        '<tool_call>[{"name": "now"}, {"na',
        call("now", "{}"),
    ),
    "in a tag after text after a call": (
        '<tool_call>{"name": "now"}</tool_call> ok <tool_',
        call("now", "{}") + text("ok <tool_"),
    ),
    "in a tag": ("Hello <tool_ca", text("Hello <tool_ca")),
}
