"""Whether a chat template has a place for tools, and the form in which it writes calls.

A template has a form for tools if it shows what a tool is, what was called with which
input, and what came of it, in every order in which a conversation can have them, and if
its calls are in a format that there is a parser for. Otherwise all of it is told in text
(`hermes.py`): the form that the model is told must be that of the calls it sees.

Next: `probe.py`, `parsing/formats.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minimsg.prompt.template import Message
from minimsg.prompt.trial import Tools, Trial, said

# What the text around a call looks like, in the order in which it is looked for, by the names
# of `parsing/formats.py`.
_FORMATS: Final[Sequence[tuple[str, str]]] = (
    ("qwen_xml", r"<tool_call>\s*<function=Lynx>\s*<parameter=Kestrel>\s*Tapir\s*</parameter>"),
    ("hermes", r'<tool_call>\s*\{"name": ?"Lynx", ?"arguments": ?\{"Kestrel": ?"Tapir"\}\}'),
    ("llama_json", r'\{"name": ?"Lynx", ?"parameters": ?\{"Kestrel": ?"Tapir"\}\}'),
)
_TOOL: Final = {  # other words than those of calls, so that it is no call that is shown
    "name": "Vole",
    "description": "Newt",
    "parameters": {"type": "object", "properties": {"Gnu": {"type": "string"}}},
}
TOOLS: Final[Tools] = ({"type": "function", "function": _TOOL},)


@dataclass(frozen=True)
class ToolForm:
    """How a template takes calls and the model writes them."""

    format: str  # a name in `parsing/formats.py`
    is_argument_text: bool  # arguments as JSON text, not as an object
    is_one_call: bool  # a message may hold one call only


def called(text: str, *, times: int = 1, as_text: bool = False, **more: object) -> Message:
    """An assistant's message with calls of the probe's tool."""
    arguments = {"Kestrel": "Tapir"}
    function = {"name": "Lynx", "arguments": json.dumps(arguments) if as_text else arguments}
    call = {"id": "toolu_0", "type": "function", "function": function}
    return said("assistant", text, tool_calls=[call] * times, **more)


def find_tool_form(trial: Trial, *, takes_runs: bool, format: str | None) -> ToolForm | None:
    """The form of a template that can do all that conversations with tools need, or None.

    `format`: of the calls, as the user says; None: what the template shows, and none else.
    """
    if not _tells_tools(trial):
        return None
    for as_text in (False, True):
        if (found := format or _format(trial, as_text=as_text)) is None:
            continue
        if all(trial.shows(c, TOOLS) for c in _loops(as_text=as_text, parallel=True)):
            return ToolForm(found, as_text, is_one_call=False)
        one = all(trial.shows(c, TOOLS) for c in _loops(as_text=as_text, parallel=False))
        if one and takes_runs:
            return ToolForm(found, as_text, is_one_call=True)
    return None


def shows_late_system(trial: Trial, tools: ToolForm | None) -> bool:
    """Whether system turns stay in their places after the first user turn."""
    ask, late = said("user", "Ibex"), said("system", "Egret")
    conversations = [
        [said("system", "Shrew"), ask, said("assistant", "Marmot"), late, said("user", "Pelican")],
        [ask, late],
        [ask, late, said("assistant", "Marmot"), said("user", "Pelican")],
    ]
    if tools:
        call, result = called("", as_text=tools.is_argument_text), said("tool", "Heron")
        conversations += [[ask, call, late, result], [ask, call, result, late]]
    return all(trial.shows(conversation) for conversation in conversations)


def _tells_tools(trial: Trial) -> bool:
    ask = said("user", "Ibex")
    texts = [trial.attempt(c, TOOLS) for c in ([ask], [said("system", "Egret"), ask])]
    return all(word in text for text in texts for word in ("Vole", "Newt", "Gnu", "Ibex"))


def _format(trial: Trial, *, as_text: bool) -> str | None:
    ask, answer = said("user", "Ibex"), said("tool", "Heron")
    text = trial.attempt([ask, called("", as_text=as_text), answer])
    return next((name for name, pattern in _FORMATS if re.search(pattern, text)), None)


def _loops(*, as_text: bool, parallel: bool) -> list[list[Message]]:
    """Tool loops in the orders that clients send; each must be shown whole."""
    ask, more = said("user", "Ibex"), said("user", "Pelican")
    result, other = said("tool", "Heron"), said("tool", "Osprey")
    both = [called("", times=2, as_text=as_text)]
    if not parallel:
        both = [called("", as_text=as_text)] * 2
    return [
        [ask, called("Marmot", as_text=as_text), result, said("assistant", "Egret"), more],
        [ask, called("", as_text=as_text), result, more],
        [ask, *both, result, other],
        [ask, *both, result, more, other],
    ]
