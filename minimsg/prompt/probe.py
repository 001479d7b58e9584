"""What a chat template can do and how it ends a turn, found by rendering small conversations.

Templates do not say whether they take a system turn, or text as a string or as blocks,
or tools, or what they write after a reply. They are asked once, at load, so that a
template that cannot work stops the server there and not the first request; and they are
asked by what they show, never by a name. Each trait is a few conversations of words that
no template writes by itself: it holds if every word comes out, in order.

Knows `ChatTemplate` and roles. What is asked about tools is in `probe_tools.py`, about
thinking in `probe_thinking.py`; the answers are used in `fitting.py` and `chat.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from minimsg.config import BY_TEMPLATE, ParserConfig
from minimsg.errors import TemplateError
from minimsg.parsing.thinking import REASONING
from minimsg.prompt.marks import Marks, Piece
from minimsg.prompt.probe_thinking import ThinkingForm, find_thinking_form
from minimsg.prompt.probe_tools import ToolForm, called, find_tool_form, shows_late_system
from minimsg.prompt.template import ChatTemplate
from minimsg.prompt.trial import Trial, said

log = logging.getLogger(__name__)

LONG_TURNS: Final = 500  # a long conversation, as agents have them


@dataclass(frozen=True)
class Traits:
    """What a template takes, and what it writes right after a reply."""

    takes_system: bool  # else system text goes into the first user turn
    takes_text: bool  # content as a string
    takes_blocks: bool  # content as [{"type": "text", "text": ...}, ...]
    turn_end: str | None  # a control string
    takes_late_system: bool = False  # a system turn stays where it is
    takes_any_start: bool = False  # the first turn need not be the user's
    takes_runs: bool = False  # a role may come twice in a row
    takes_reasoning: bool = False  # `reasoning_content` is shown, if only in the last turn
    tools: ToolForm | None = None  # None: tools are told in text, in Hermes form
    thinking: ThinkingForm | None = None  # None: the model does not think
    format_without_form: str = "hermes"  # of calls where tools are told in text

    @property
    def tool_format(self) -> str:
        """The form in which the model writes calls: a name in `parsing/formats.py`."""
        return self.tools.format if self.tools else self.format_without_form


def probe(
    template: ChatTemplate, controls: Collection[str], parsers: ParserConfig = BY_TEMPLATE
) -> Traits:
    """The traits of `template`; parsers that the user has named are not looked for.

    Raises TemplateError if it cannot render a conversation.
    """
    takes_text, takes_blocks = _content_forms(template)
    trial = Trial(template, takes_text=takes_text)
    exchange = [said("user", "Pelican"), said("assistant", "Marmot"), said("user", "Ibex")]
    trial.text([*exchange[:2] * (LONG_TURNS // 2), exchange[2]])
    _compare_controls(template, trial.filled(exchange), controls)
    takes_system = trial.shows([said("system", "Egret"), said("user", "Ibex")])
    takes_runs = _takes_runs(trial)
    format = None if parsers.tool_call_parser == "auto" else parsers.tool_call_parser
    tools = find_tool_form(trial, takes_runs=takes_runs, format=format)
    return Traits(
        takes_system=takes_system,
        takes_text=takes_text,
        takes_blocks=takes_blocks,
        turn_end=_turn_end(template, trial.filled(exchange), "Marmot"),
        takes_late_system=takes_system and shows_late_system(trial, tools),
        takes_any_start=_takes_any_start(trial, takes_system=takes_system),
        takes_runs=takes_runs,
        takes_reasoning=_takes_reasoning(trial, tools),
        tools=tools,
        thinking=_thinking_form(template, trial, tools, parsers.reasoning_parser),
        format_without_form=format or "hermes",
    )


def _thinking_form(
    template: ChatTemplate, trial: Trial, tools: ToolForm | None, parser: str
) -> ThinkingForm | None:
    if parser == "auto":
        return find_thinking_form(template, trial, tools)
    tags = REASONING[parser]
    return find_thinking_form(template, trial, tools, tags) if tags else None


def _content_forms(template: ChatTemplate) -> tuple[bool, bool]:
    """Whether content may be a string, and whether it may be a list of blocks."""
    as_text, as_blocks = Trial(template, takes_text=True), Trial(template, takes_text=False)
    ask = [said("user", "Ibex")]
    takes_text, takes_blocks = as_text.shows(ask), as_blocks.shows(ask)
    if not (takes_text or takes_blocks):
        as_text.text(ask)  # says why
        raise TemplateError("it leaves out what the user says")
    exchange = [*ask, said("assistant", "Marmot"), *ask]
    conversations = [exchange, [said("system", "Egret"), *exchange]]
    are_alike = all(as_text.attempt(c) == as_blocks.attempt(c) for c in conversations)
    return takes_text, takes_blocks and (are_alike or not takes_text)


def _takes_runs(trial: Trial) -> bool:
    return trial.shows(
        [
            said("user", "Pelican"),
            said("user", "Ibex"),
            said("assistant", "Marmot"),
            said("assistant", "Egret"),
            said("user", "Heron"),
        ]
    )


def _takes_any_start(trial: Trial, *, takes_system: bool) -> bool:
    starts = [[said("assistant", "Marmot"), said("user", "Ibex")]]
    if takes_system:
        starts += [[said("system", "Egret")], [said("system", "Egret"), *starts[0]]]
    return all(trial.shows(start) for start in starts)


def _takes_reasoning(trial: Trial, tools: ToolForm | None) -> bool:
    ask = said("user", "Ibex")
    conversations = [[ask, said("assistant", "Marmot", reasoning_content="Osprey"), ask]]
    if tools:
        call = called("Marmot", as_text=tools.is_argument_text, reasoning_content="Osprey")
        conversations.append([ask, call, said("tool", "Heron")])
    return any("Osprey" in trial.attempt(messages) for messages in conversations)


def _turn_end(
    template: ChatTemplate, exchange: Sequence[Mapping[str, object]], reply: str
) -> str | None:
    """The control token that follows the reply, with at most white space between."""
    pieces = template.render_pieces(exchange, add_generation_prompt=True, enable_thinking=False)
    for piece, following in pairwise(pieces):
        if piece.text.rstrip().endswith(reply):
            return following.text
    return None


def _compare_controls(
    template: ChatTemplate, exchange: Sequence[Mapping[str, object]], controls: Collection[str]
) -> None:
    """Say so if the template puts control tokens together in a way that is not followed."""
    marks = Marks(controls)
    pieces = template.render_pieces(exchange, add_generation_prompt=True, enable_thinking=False)
    text = template.render(exchange, add_generation_prompt=True, enable_thinking=False)
    whole = marks.split(marks.mark(text))
    if unmarked := _controls(whole)[len(_controls(pieces)) :]:
        log.warning(
            "The chat template composes control tokens such as %r from parts; "
            "they will be encoded as plain text.",
            unmarked[-1],
        )


def _controls(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.is_control]
