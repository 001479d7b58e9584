"""The grammar of a whole reply: thinking where it may come, then one JSON value or calls.

Always two grammars, and both must hold. One says what the request asks for. The other is
wider than any schema, but for what schemas do not rule out and readers of JSON refuse:
numbers beyond a float or of endless digits, nesting without end. Knows how grammars are
put together, not how they are compiled (`compiler.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from minimsg.constrain import lark
from minimsg.constrain.calls import CallForm
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.parsing.thinking import ThinkingTags
from minimsg.protocol.wire import JsonObject

TAIL = "TAIL?\nTAIL: /(?s:.+)/\n"  # the token that ends a held call may hold more, of any kind
GAP = "GAP: /\\n{1,2}/\n"  # what models write after thinking


@dataclass(frozen=True)
class ReplyForm:
    """What a reply is made of. Schemas are made ready; None takes any object."""

    tools: Mapping[str, JsonObject | None]  # that are called in it; empty: no call
    value: JsonObject | None  # that it may be instead
    is_one_call: bool = False
    thinking: ThinkingTags | None = None  # tags that may stand before it


def reply_grammars(reply: ReplyForm, form: CallForm | None, vocabulary: Vocabulary) -> list[str]:
    """Grammars of `reply`, whose calls are written in `form`."""
    thinking, rules = _thinking(reply.thinking, vocabulary)
    asked, loose = [rules], [rules]
    kinds = []
    if reply.value is not None:
        kinds.append("value")
        asked.append(f"value: {lark.schema(reply.value)}\n")
        loose.append(f"value: {lark.LOOSE_VALUE}\n")
    if reply.tools:
        assert form is not None
        kinds.append("calls")
        asked += _calls(reply, form, vocabulary)
        loose += [
            _sequence(["any_call"], reply, form, vocabulary),
            form.body.loose_rules("any_call", reply.tools),
        ]
    start = f"start: {thinking} ({' | '.join(kinds)})\n"
    return [lark.grammar(start, *asked), lark.grammar(start, *loose, is_forcing=False)]


def held_grammars(tool: str, schema: JsonObject | None, form: CallForm) -> list[str]:
    """Grammars of a call of `tool` that the model began by itself, without tags."""
    if schema is None:
        loose = form.body.loose_rules("any_call", {})
        return [lark.grammar(f"start: any_call {TAIL}", loose, is_forcing=False)]
    asked = form.body.rules("call", tool, schema, is_held=True)
    loose = form.body.loose_rules("any_call", {tool: schema})
    return [
        lark.grammar(f"start: call {TAIL}", asked),
        lark.grammar(f"start: any_call {TAIL}", loose, is_forcing=False),
    ]


def _calls(reply: ReplyForm, form: CallForm, vocabulary: Vocabulary) -> list[str]:
    names = [f"call_{index}" for index in range(len(reply.tools))]
    rules = [
        form.body.rules(name, tool, schema, is_held=False)
        for name, (tool, schema) in zip(names, reply.tools.items(), strict=True)
    ]
    return [_sequence(names, reply, form, vocabulary), *rules]


def _sequence(names: list[str], reply: ReplyForm, form: CallForm, vocabulary: Vocabulary) -> str:
    """One call, or several, of the rules `names`."""
    any_call = f"({' | '.join(names)})"
    call = f"call: {form.enclosed(any_call, vocabulary)}\n"
    if reply.is_one_call:
        return f"calls: call\n{call}"
    return f"calls: call ({lark.literal(form.between)} call)*\n{call}"


def _thinking(tags: ThinkingTags | None, vocabulary: Vocabulary) -> tuple[str, str]:
    """What may stand before the reply proper, and the rules of it."""
    if tags is None:
        return "", ""
    control = vocabulary.tokenizer.control
    if tags.opening in control and tags.closing in control:
        opening = "" if tags.is_opened else lark.tag(tags.opening, vocabulary)
        thought = f"{opening} /(?s:.+)/? {lark.tag(tags.closing, vocabulary)} GAP?"
        rules = GAP
    else:
        opening = "" if tags.is_opened else tags.opening
        ended = (opening + "(?s:.*)" + tags.closing).replace("/", r"\/")
        thought, rules = "thoughts GAP?", f"thoughts[lazy]: /{ended}/\n{GAP}"
    return (thought if tags.is_opened else f"({thought})?"), rules
