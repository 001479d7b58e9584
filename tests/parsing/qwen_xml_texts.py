"""Texts in the format of Qwen3-Coder, and what they are."""

from __future__ import annotations

from .splitting import Table, call, cut_call, text

QWEN_XML: Table = {
    "a pure call": (
        "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=note>\n"
        "1\n</parameter>\n</function>\n</tool_call>",
        call("add", '{"a": 1, "note": "1"}'),
    ),
    "text, then a call": (
        "Let me see.\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        text("Let me see.") + call("now", "{}"),
    ),
    "calls back to back, then text": (
        "<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n"
        "</function>\n</tool_call>\nDone.",
        call("now", "{}") + call("now", "{}") + text("Done."),
    ),
    "without the outer tag": (
        "I look.\n<function=now>\n</function>\n</tool_call>",
        text("I look.") + call("now", "{}"),
    ),
    "without the end of the function": (
        "<tool_call><function=add><parameter=a>1</parameter></tool_call>!",
        call("add", '{"a": 1}') + text("!"),
    ),
    "a value of several lines, with tags": (
        '<tool_call>\n<function=add>\n<parameter=note>\n\n <b>\n</tool_call> "x" \\\n\n'
        "</parameter>\n</function>\n</tool_call>",
        call("add", r'{"note": "\n <b>\n</tool_call> \"x\" \\\n"}'),
    ),
    "an empty value": (
        "<tool_call><function=add><parameter=note>\n</parameter></function></tool_call>",
        call("add", '{"note": ""}'),
    ),
    "a number that is none": (
        "<tool_call><function=add><parameter=a>\nmany\n</parameter></function></tool_call>",
        call("add", '{"a": "many"}'),
    ),
    "an eager tool": (
        "<tool_call><function=write><parameter=text>\na\n</p> é\n</parameter>\n<parameter=n>2"
        "</parameter></function></tool_call>",
        call("write", r'{"text": "a\n</p> é", "n": 2}'),
    ),
    "an unknown name": (
        "<tool_call>\n<function=rm>\n</function>\n</tool_call> y",
        text("<tool_call>\n<function=rm>\n</function>\n</tool_call> y"),
    ),
    "markup in text": (
        "Write <tool_call> and <function= and </function>, a < b",
        text("Write <tool_call> and <function= and </function>, a < b"),
    ),
    "two openings": (
        "x <tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        text("x <tool_call>") + call("now", "{}"),
    ),
    "an opening before a function that is half": (
        "<tool_call>\n<fun<function=now>\n</function>\n</tool_call>",
        text("<tool_call>\n<fun") + call("now", "{}"),
    ),
    "nothing between the tags": (
        "a <tool_call>\n</tool_call> b",
        text("a <tool_call>\n</tool_call> b"),
    ),
    "half a function tag": ("<tool_call>\n<func", text("<tool_call>\n<func")),
    "it breaks between parameters": (
        "<tool_call><function=add><parameter=a>1</parameter>oops</function></tool_call> x",
        call("add", '{"a": 1}') + text("x"),
    ),
    "it ends in a value": (
        "<tool_call><function=add><parameter=a>1</parameter><parameter=note>half",
        call("add", '{"a": 1}'),
    ),
    "an eager tool ends in a value": (
        "<tool_call><function=write><parameter=text>half</para",
        call("write", '{"text": "half"}'),
    ),
}
QWEN_XML_UNENDED: Table = {
    "a text before a parameter": (
        "<function=add><parameter=note>\nhalf\n<parameter=a>\n1\n</parameter></function>",
        call("add", '{"note": "half", "a": 1}'),
    ),
    "a number before a parameter": (
        "<function=add><parameter=a>1<parameter=b>2\n</function></tool_call>!",
        call("add", '{"a": 1, "b": 2}') + text("!"),
    ),
    "a number before the end of the call": (
        "<tool_call><function=add><parameter=a>1</tool_call>!",
        call("add", '{"a": 1}') + text("!"),
    ),
    "a text before both ends": (
        "<tool_call>\n<function=add>\n<parameter=note>\n<b>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        call("add", '{"note": "<b>"}') + call("now", "{}"),
    ),
    "a text before the end of the function, and no more": (
        "<function=add><parameter=note>\nhalf\n</function>\n",
        call("add", '{"note": "half"}'),
    ),
    "a text before the end of the call, and no more": (
        "<function=add><parameter=note>half</tool_call>",
        call("add", '{"note": "half"}'),
    ),
    "an eager text before a parameter": (
        "<function=write><parameter=text>\n<parameter=x>\n<parameter=n>\n1\n</parameter>"
        "</function>",
        call("write", '{"text": "<parameter=x>", "n": 1}'),
    ),
    "an eager text before both ends": (
        "<tool_call><function=write><parameter=text>half\n</function>\n</tool_call>\nok",
        call("write", '{"text": "half"}') + text("ok"),
    ),
    "a parameter that was given is text": (
        "<function=add><parameter=a>1</parameter><parameter=note>x\n<parameter=a>\n"
        "<parameter=c>\n</parameter></function>",
        call("add", r'{"a": 1, "note": "x\n<parameter=a>\n<parameter=c>"}'),
    ),
    "tags within a line are text": (
        "<function=add><parameter=note>see <parameter=a> and </function> in it</parameter>"
        "</function>",
        call("add", '{"note": "see <parameter=a> and </function> in it"}'),
    ),
    "a held tool is read as its grammar has it": (
        "<function=held><parameter=note>x\n<parameter=a>\n1</parameter></function>",
        call("held", r'{"note": "x\n<parameter=a>\n1"}'),
    ),
}
QWEN_XML_CUT: Table = {
    "in a string": (
        "<tool_call><function=add><parameter=a>1</parameter><parameter=note>half\n</pa",
        cut_call("add", '{"a": 1, "note": "half'),
    ),
    "in a number": (
        "<tool_call><function=add><parameter=note>x</parameter><parameter=a>1",
        cut_call("add", '{"note": "x"'),
    ),
    "after the name": ("<tool_call><function=add>", cut_call("add")),
    "in the end tag": ("<tool_call><function=now></function>\n</t", call("now", "{}")),
    "in the tag of the next function": (
        "<tool_call><function=now></function>\n<function=ad",
        call("now", "{}"),
    ),
    "in a tag": ("<tool_call><function=add", []),
}
