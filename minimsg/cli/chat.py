"""A conversation at the terminal: what was said, what is set, what a /command does.

Pure state: reading lines, asking the model and printing are in `run.py`. A setting is a
field of the Messages request and is checked as one when it is set.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Final

from minimsg.bench.sample import JsonObject
from minimsg.config import option

HELP: Final = '''\
/set                    show what is set
/set NAME VALUE         temperature, top_p, top_k, max_tokens, seed, system, stop
/set NAME               back to the default
/clear                  forget what was said
/help                   this
/quit                   leave (or Ctrl-D)
"""                     begins and ends several lines: of a question, or of a VALUE
Ctrl-C                  stops the reply
'''


@dataclass(frozen=True)
class ReplySettings:
    """What a reply is asked for with; the flags of `run` and the names of /set."""

    system: str | None = option(None, "What the model is told first.")
    max_tokens: int | None = option(None, "Length limit of a reply.", minimum=1)
    temperature: float | None = option(
        None, "How freely the next token is drawn; 0 takes the likeliest. Default is the model's."
    )
    top_p: float | None = option(None, "Draw from the likeliest tokens of this total probability.")
    top_k: int | None = option(None, "Draw from so many of the likeliest tokens.")
    seed: int | None = option(None, "Same seed, same reply.")
    stop: str | None = option(None, "Text at which the reply ends; /set stop adds another.")

    def request_fields(self) -> JsonObject:
        """What is set, as fields of a Messages request."""
        given: JsonObject = {name: v for name, v in asdict(self).items() if v is not None}
        if "stop" in given:
            given["stop_sequences"] = [given.pop("stop")]
        return given


NAMES: Final = tuple(field.name for field in fields(ReplySettings))
TEXTS: Final = ("system", "stop")  # given as they are, or as a JSON string with its escapes


class Quit(Exception):
    """The user wants to leave."""


class Conversation:
    """Turns and settings. Invariant: `messages` alternates, and ends with a reply or is empty."""

    def __init__(self, model: str, settings: ReplySettings) -> None:
        self.model = model
        self.settings = settings.request_fields()
        self.messages: list[JsonObject] = []

    def request(self, question: str) -> JsonObject:
        """The body of the Messages request that asks `question` next."""
        messages = [*self.messages, {"role": "user", "content": question}]
        return {"model": self.model, "messages": messages, "stream": True, **self.settings}

    def add(self, question: str, reply: str) -> None:
        """Remember a turn. A reply without text is none: it could not be sent back."""
        if reply:
            self.messages.append({"role": "user", "content": question})
            self.messages.append({"role": "assistant", "content": reply})

    def check(self) -> None:
        """Raise InvalidRequest for a setting that no request may hold."""
        _check(self.model, self.settings)

    def command(self, line: str) -> str:
        """Do what a line with / says; returns what to show. Raises Quit, RequestError."""
        name, _, rest = line[1:].strip().partition(" ")
        match name:
            case "set":
                return self._set(*_name_and_value(rest))
            case "clear":
                self.messages.clear()
                return "forgotten"
            case "help" | "?":
                return HELP
            case "quit" | "exit" | "bye":
                raise Quit
        return f"there is no command /{name}; /help lists them"

    def _set(self, name: str, value: str) -> str:
        if not name:
            return "\n".join(f"{key} = {value!r}" for key, value in self.settings.items()) or (
                "nothing is set"
            )
        if name not in NAMES:
            return f"{name} cannot be set; these can: {', '.join(NAMES)}"
        field = "stop_sequences" if name == "stop" else name
        changed = {key: kept for key, kept in self.settings.items() if key != field}
        if value:
            changed[field] = self._value(name, value)
        _check(self.model, changed)
        self.settings = changed
        return f"{name} = {changed.get(field, 'default')!r}"

    def _value(self, name: str, text: str) -> object:
        value = _text(text) if name in TEXTS else _json_or_text(text)
        if name != "stop":
            return value
        stops = self.settings.get("stop_sequences", [])
        assert isinstance(stops, list)
        return [*stops, value]


def read_question(read: Callable[[str], str]) -> str:
    """One question or command from `read(prompt)`; triple quotes hold several lines of it.

    They may open at the start or after `/set NAME`. Raises EOFError when the input ends.
    """
    line = read(">>> ")
    start, quotes, rest = line.partition('"""')
    if not quotes or (start and not start.startswith("/set ")):
        return line.strip()
    lines = [rest]
    while not lines[-1].rstrip().endswith('"""'):
        lines.append(read("... "))
    lines[-1] = lines[-1].rstrip()[:-3]
    return start + "\n".join(lines).strip()


def _name_and_value(rest: str) -> tuple[str, str]:
    name, _, value = rest.strip().partition(" ")
    return name, value.strip()


def _text(text: str) -> str:
    """`"a\\n"` in quotes is a JSON string, anything else is itself."""
    value = _json_or_text(text) if text.startswith('"') else text
    return value if isinstance(value, str) else text


def _json_or_text(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def _check(model: str, settings: JsonObject) -> None:
    """Raise what the server would: a setting must be one that a request may hold."""
    from minimsg.protocol.request import MessagesRequest

    probe = {"model": model, "messages": [{"role": "user", "content": "?"}]}
    MessagesRequest.parse(probe | settings)
