"""Small conversations tried on a chat template, and whether it shows what was said in them.

The words that are said are names of animals, which no template writes by itself. Used by
`probe.py` and `probe_tools.py`; knows no traits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from minimsg.errors import TemplateError
from minimsg.prompt.marks import Role
from minimsg.prompt.template import ChatTemplate, Message

Tools = Sequence[Mapping[str, object]]

_WORD: Final = re.compile("Pelican|Marmot|Ibex|Egret|Heron|Osprey|Kestrel|Lynx|Tapir|Shrew")


def said(role: str, text: str, **more: object) -> Message:
    """A message; `more` are its other fields."""
    return {"role": Role(role), "content": text, **more}


class Trial:
    """A template and the form in which it takes content."""

    def __init__(self, template: ChatTemplate, *, takes_text: bool) -> None:
        self._template = template
        self._takes_text = takes_text

    def text(self, messages: Sequence[Message], tools: Tools | None = None) -> str:
        """What the template writes. Raises TemplateError."""
        return self._template.render(
            self.filled(messages), tools=tools, add_generation_prompt=True, enable_thinking=False
        )

    def attempt(self, messages: Sequence[Message], tools: Tools | None = None) -> str:
        """What the template writes, or nothing if it fails."""
        try:
            return self.text(messages, tools)
        except TemplateError:
            return ""

    def shows(self, messages: Sequence[Message], tools: Tools | None = None) -> bool:
        """Whether every word of `messages` comes out, in their order and no more than once."""
        expected = [word for message in messages for word in _words(message)]
        shown = _WORD.findall(self.attempt(messages, tools))
        return [word for word in shown if word in expected] == expected

    def filled(self, messages: Sequence[Message]) -> list[Message]:
        """`messages` with their content in the form that the template takes."""
        if self._takes_text:
            return list(messages)
        return [
            {**message, "content": [{"type": "text", "text": message["content"]}]}
            for message in messages
        ]


def _words(message: Message) -> list[str]:
    """The words of a message in the order in which templates write them; thoughts may go."""
    return _WORD.findall(f"{message['content']} {message.get('tool_calls', '')}")
