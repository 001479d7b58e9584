"""Whether the model of a chat template thinks, and how its template is told to let it.

A model thinks if its template shows an assistant's thoughts between tags, takes them out
of what the assistant said, ends the prompt with an open tag, or writes the tags in one
setting of a switch and not in the other. Tags in the vocabulary alone prove nothing: a
family shares it, and not all of its members think.

Next: `probe.py`; what is made of it is in `thinking.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minimsg.errors import TemplateError
from minimsg.parsing.thinking import THINK, ThinkingTags
from minimsg.prompt.marks import Piece
from minimsg.prompt.probe_tools import ToolForm, called
from minimsg.prompt.template import ChatTemplate, Message
from minimsg.prompt.trial import Trial, said

SWITCHES: Final = ("enable_thinking", "thinking")  # variables that templates are known to read


@dataclass(frozen=True)
class ThinkingForm:
    """How thinking is switched, and the tags around it."""

    switch: str | None  # a variable of the template, true or false; None: nothing switches it
    opening: str = THINK.opening
    closing: str = THINK.closing
    is_always_open: bool = False  # the model begins to think without the opening

    def is_open_after(self, pieces: Sequence[Piece]) -> bool:
        """Whether a prompt ends inside of thinking: with the opening, written by the template."""
        text = "".join(piece.text for piece in pieces[-3:])  # a control token and its neighbours
        is_closed = text.rstrip().endswith(self.closing)
        return text.rstrip().endswith(self.opening) or (self.is_always_open and not is_closed)


def find_thinking_form(
    template: ChatTemplate, trial: Trial, tools: ToolForm | None, tags: ThinkingTags | None = None
) -> ThinkingForm | None:
    """How the model of `template` is made to think; None if it does not think.

    `tags`: between which it thinks in any case, as the user says.
    """
    is_certain, tags = tags is not None, tags or THINK
    prompts = {switch: _prompts(template, trial, switch) for switch in SWITCHES}
    switch = next((name for name, (on, off) in prompts.items() if on != off), None)
    on, off = prompts[switch or SWITCHES[0]]
    is_switched = switch is not None and (tags.opening in on or tags.opening in off)
    is_open = on.rstrip().endswith(tags.opening)
    shows = _shows_thoughts(trial, tools, tags) or _removes_thoughts(trial, tags)
    if is_certain or is_switched or is_open or shows:
        return ThinkingForm(switch, tags.opening, tags.closing, is_always_open=tags.is_opened)
    return None


def _prompts(template: ChatTemplate, trial: Trial, switch: str) -> tuple[str, str]:
    """The prompt of a question with the switch on and off."""
    messages = trial.filled([said("user", "Ibex")])
    try:
        on, off = (
            template.render(messages, tools=None, add_generation_prompt=True, **{switch: is_on})
            for is_on in (True, False)
        )
    except TemplateError:
        return "", ""
    return on, off


def _shows_thoughts(trial: Trial, tools: ToolForm | None, tags: ThinkingTags) -> bool:
    shown = re.compile(rf"{re.escape(tags.opening)}\s*Osprey\s*{re.escape(tags.closing)}")
    ask = said("user", "Ibex")
    answer = said("assistant", "Marmot", reasoning_content="Osprey")
    conversations: list[list[Message]] = [[ask, answer], [ask, answer, ask]]
    if tools:
        call = called("", as_text=tools.is_argument_text, reasoning_content="Osprey")
        conversations.append([ask, call, said("tool", "Heron")])
    return any(shown.search(trial.attempt(messages)) for messages in conversations)


def _removes_thoughts(trial: Trial, tags: ThinkingTags) -> bool:
    """Whether only the answer is left of an assistant's text that holds both."""
    text = f"{tags.opening}Osprey{tags.closing}Marmot"
    shown = trial.attempt([said("user", "Ibex"), said("assistant", text), said("user", "Heron")])
    return "Marmot" in shown and "Osprey" not in shown
