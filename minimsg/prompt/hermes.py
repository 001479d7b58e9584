"""Tools for a template that has no place for them: told and shown in text, in Hermes form.

The system text ends with the tools, one JSON line each between `<tools>` and `</tools>`,
and with how to call one. In the conversation a call is the assistant's text

    <tool_call>
    {"name": "now", "arguments": {}}
    </tool_call>

and its result the user's, between `<tool_response>` lines. Results and texts of one user
turn are one entry, in their order. Models that were trained on tools mostly know this
form, and a reply in it is read by the parser of the same name. All of it is plain text:
unlike in a template with tools of its own, what a user writes in this form looks the
same. The words are ours; the form is that of the published Hermes and Qwen templates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from minimsg.prompt.conversation import Call, Entry, Part
from minimsg.prompt.tools import Function

_BEFORE: Final = (
    "# Tools\n\nYou can call functions. Each line between <tools> and </tools> describes one "
    "in JSON:\n<tools>"
)
_AFTER: Final = (
    "</tools>\n\nTo call a function, write a JSON object with its name and its arguments "
    'between <tool_call> and </tool_call>:\n<tool_call>\n{"name": <function-name>, '
    '"arguments": <args-json-object>}\n</tool_call>'
)


def in_hermes_form(entries: Sequence[Entry], functions: Sequence[Function]) -> list[Entry]:
    """`entries` of system, user and assistant only, the first of which tells of `functions`."""
    written: list[Entry] = []
    for entry in entries:
        entry = _in_text(entry)
        if written and written[-1].role == entry.role == "user":
            both = [*written[-1].texts, *entry.texts]
            written[-1] = Entry("user", both, is_one_text=True)
        else:
            written.append(entry)
    return _with_tools(written, functions) if functions else written


def _in_text(entry: Entry) -> Entry:
    if entry.role == "tool":
        texts = [
            Part(part.path, f"<tool_response>\n{part.text}\n</tool_response>")
            for part in entry.texts
        ]
        return Entry("user", texts, is_one_text=True)
    calls = [Part(call.path, _call(call)) for call in entry.calls]
    is_one_text = entry.is_one_text or bool(calls)
    return Entry(entry.role, [*entry.texts, *calls], entry.thoughts, is_one_text=is_one_text)


def _call(call: Call) -> str:
    said = json.dumps({"name": call.name, "arguments": call.input}, ensure_ascii=False)
    return f"<tool_call>\n{said}\n</tool_call>"


def _with_tools(entries: list[Entry], functions: Sequence[Function]) -> list[Entry]:
    told = [
        Part(function.path, json.dumps(function.template_form(), ensure_ascii=False))
        for function in functions
    ]
    text = [Part("", _BEFORE), *told, Part("", _AFTER)]
    if entries and entries[0].role == "system":
        gap = Part("", "")  # an empty line
        texts = [*entries[0].texts, gap, *text]
        return [Entry("system", texts, is_one_text=True), *entries[1:]]
    return [Entry("system", text, is_one_text=True), *entries]
