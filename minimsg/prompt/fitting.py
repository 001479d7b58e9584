"""Entries as the messages of a particular template: what it cannot take gets another form.

By the template's traits (`probe.py`), in this order:

1. Without a form for tools, they become text (`hermes.py`).
2. Where only one call may stand in a message, each gets a message of its own.
3. A system turn that would not stay in its place is folded: in front of the user turn
   that follows, else behind the one before it, else it is a user turn itself, after the
   results of a call that it parts. Where no system text is taken at all, the first goes
   the same way. An empty line parts the two texts.
4. Where the user has to begin and does not, the system text is the user's.
5. Where a role may not come twice in a row, neighbours are merged; an assistant's calls
   then stand behind all of its text.

Texts of one message are joined by a line break, or given as blocks if the template takes
blocks. Next: `template.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, takewhile

from minimsg.prompt.conversation import Call, Entry, Part, joined
from minimsg.prompt.hermes import in_hermes_form
from minimsg.prompt.marks import Role
from minimsg.prompt.probe import Traits
from minimsg.prompt.template import Message
from minimsg.prompt.tools import Function


def fit(entries: Sequence[Entry], functions: Sequence[Function], traits: Traits) -> list[Entry]:
    """`entries` in a sequence that a template with these traits takes."""
    fitted = list(entries)
    if traits.tools is None:
        fitted = in_hermes_form(fitted, functions)
    elif traits.tools.is_one_call:
        fitted = [single for entry in fitted for single in _one_call_each(entry)]
    if not (traits.takes_system and traits.takes_late_system):
        fitted = _with_system_folded(fitted, keeps_first=traits.takes_system)
    if not traits.takes_any_start:
        fitted = _with_a_user_first(fitted)
    return fitted if traits.takes_runs else _merged(fitted)


def message_of(entry: Entry, traits: Traits) -> Message:
    """What the template gets for `entry`. `Role` tells it from what a user wrote."""
    message = {"role": Role(entry.role), "content": _content(entry, traits)}
    if entry.thoughts:
        message["reasoning_content"] = joined(entry.thoughts)
    if entry.calls:
        as_text = traits.tools is not None and traits.tools.is_argument_text
        message["tool_calls"] = [_call(call, as_text=as_text) for call in entry.calls]
    if entry.role == "tool":
        message |= {"tool_call_id": entry.call_id, "name": entry.name}
    return message


def _content(entry: Entry, traits: Traits) -> object:
    is_one_text = entry.is_one_text or any(part.goes_on for part in entry.texts)
    are_blocks = traits.takes_blocks and len(entry.texts) > 1 and not is_one_text
    if traits.takes_text and not are_blocks:
        return joined(entry.texts)
    texts = [part.text for part in entry.texts] if are_blocks else [joined(entry.texts)]
    return [{"type": "text", "text": text} for text in texts]


def _call(call: Call, *, as_text: bool) -> dict[str, object]:
    arguments = json.dumps(call.input, ensure_ascii=False) if as_text else call.input
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _one_call_each(entry: Entry) -> list[Entry]:
    if len(entry.calls) < 2:
        return [entry]
    first, *others = ([call] for call in entry.calls)
    return [replace(entry, calls=first), *(Entry("assistant", calls=call) for call in others)]


def _with_system_folded(entries: Sequence[Entry], *, keeps_first: bool) -> list[Entry]:
    folded: list[Entry] = []
    waiting: list[Part] = []  # system text that looks for its user turn
    for place, entry in enumerate(entries):
        if entry.role == "system" and not (keeps_first and place == 0):
            waiting += entry.texts
        elif entry.role == "user" and waiting:
            folded.append(_both(waiting, entry.texts))
            waiting = []
        else:
            if waiting and entry.role == "assistant":
                _settle(folded, waiting)
                waiting = []
            folded.append(entry)
    if waiting:
        _settle(folded, waiting)
    return folded


def _settle(entries: list[Entry], system: Sequence[Part]) -> None:
    """Put `system` at the end, where no user turn follows."""
    if entries and entries[-1].role == "user":
        entries[-1] = _both(entries[-1].texts, system)
    else:
        entries.append(Entry("user", list(system)))


def _both(before: Sequence[Part], after: Sequence[Part]) -> Entry:
    """A user's turn of two texts with an empty line between."""
    *firsts, last = before
    texts = [*firsts, Part(last.path, f"{last.text}\n"), *after]
    return Entry("user", texts, is_one_text=True)


def _with_a_user_first(entries: Sequence[Entry]) -> list[Entry]:
    systems = list(takewhile(lambda entry: entry.role == "system", entries))
    others = list(entries[len(systems) :])
    if others and others[0].role == "user":
        return list(entries)
    return [*(replace(entry, role="user") for entry in systems), *others]


def _merged(entries: Sequence[Entry]) -> list[Entry]:
    """Neighbours of one role as one; results stay apart, each with its call."""
    merged: list[Entry] = []
    for role, run in groupby(entries, key=lambda entry: entry.role):
        alike = list(run)
        merged += alike if role == "tool" else [_one_of(alike)]
    return merged


def _one_of(entries: Sequence[Entry]) -> Entry:
    return Entry(
        entries[0].role,
        [part for entry in entries for part in entry.texts],
        [part for entry in entries for part in entry.thoughts],
        [call for entry in entries for call in entry.calls],
        is_one_text=any(entry.is_one_text for entry in entries),
    )
