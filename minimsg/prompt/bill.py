"""What the tokens of a prompt are for: each block, each tool, and the template itself.

A token is paid for by whoever says its first character (`sources.py`). Every block and
tool of the request is on the bill, with 0 if the model does not read it; blocks inside of
a block are part of it. The template pays for what it writes by itself: roles, control
tokens, instructions, what stands around the first and the last value of a tool or call,
and for values that it looks into, where no marker can stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import Prompt
from minimsg.prompt.sources import map_sources
from minimsg.prompt.spans import Source
from minimsg.prompt.values import block_of
from minimsg.protocol.counting import TokenBill
from minimsg.protocol.request import PromptRequest


def bill_of(prompt: Prompt, request: PromptRequest, chat: ChatModel) -> TokenBill:
    """The bill of `prompt`, which `request` was rendered to."""
    return add_up(sources_of(prompt, chat), request)


def sources_of(prompt: Prompt, chat: ChatModel) -> list[Source | None]:
    """What each token of `prompt` comes from."""
    assert prompt.reading is not None  # `render` has made it
    sources = map_sources(prompt.reading, chat)
    assert len(sources) == len(prompt.ids), "every token has a source, if only the template"
    return sources


def add_up(sources: Iterable[Source | None], request: PromptRequest) -> TokenBill:
    """The bill of tokens with these sources."""
    tokens = Counter(block_of(source.path) if source else "" for source in sources)
    system = [f"system.{n}" for n in range(len(request.system))]
    content = [
        f"messages.{n}.content.{m}"
        for n, message in enumerate(request.messages)
        for m in range(len(message.content))
    ]
    bill: TokenBill = {
        "blocks": _items(tokens, [*system, *content]),
        "tools": _items(tokens, (f"tools.{n}" for n in range(len(request.tools)))),
        "template": tokens.pop("", 0),
    }
    assert not tokens, f"tokens of nothing in the request: {tokens}"
    return bill


def _items(tokens: Counter[str], paths: Iterable[str]) -> dict[str, int]:
    """The tokens of each path, which are taken out of `tokens`."""
    return {path: tokens.pop(path, 0) for path in paths}
