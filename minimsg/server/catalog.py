"""Which names a request may give to the model: one table, asked by every route.

A name is compared, never opened: no path, no address and no download is made from it.
Also says what the served model cannot do. Knows nothing of HTTP, so that a worker process
can use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Final

from minimsg.errors import NotFound
from minimsg.limits import LIMITS
from minimsg.prompt.chat import ChatModel

THINKING: Final = frozenset({"adaptive-thinking", "effort", "thinking"})


def lacking(chat: ChatModel, *, citations: str = "overlap") -> frozenset[str]:
    """The features that `chat` cannot have here; PDFs only for want of the extra `pdf`.

    `citations`: how they are made (`config.py`).
    """
    thinks = chat.traits is not None and chat.traits.thinking is not None
    lacks = {
        "citations": citations == "off",
        "images": chat.vision is None,
        "pdfs": find_spec("pypdfium2") is None,
        **dict.fromkeys(THINKING, not thinks),
    }
    return frozenset(name for name, is_lacking in lacks.items() if is_lacking)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The served model's id and what else it answers to: names or globs such as `claude-*`."""

    served: str
    aliases: tuple[str, ...] = ()
    any_model: bool = False

    def find(self, name: str) -> str:
        """The id that is served for `name`. Raises NotFound."""
        can_be_a_name = name.isprintable() and 0 < len(name) <= LIMITS.model_name_chars
        if name == self.served or (self.any_model and can_be_a_name):
            return self.served
        if any(fnmatchcase(name, alias) for alias in self.aliases):
            return self.served
        raise NotFound(f"model: {name}")
