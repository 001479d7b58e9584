"""Rules about blocks: whose turn may hold which, what text must hold, what can be read here.

`ROLES` is the table of who may send what. Source: Messages API reference, request content
blocks, and the change list of version 2026-10-21.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import (
    Base64PdfSource,
    ContainerUploadBlock,
    DocumentBlock,
    FileSource,
    ImageBlock,
    SearchResultBlock,
    TextBlock,
    UrlSource,
)
from minimsg.protocol.dialect import NEW
from minimsg.protocol.turns import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest
    from minimsg.protocol.turns import Role

URLS: Final = "with --allow-urls the server fetches it for a reply, never to count tokens"
ASSISTANT: Final[tuple[Role, ...]] = ("assistant",)  # whatever the table does not name
ROLES: Final[dict[str, tuple[Role, ...]]] = {
    "container_upload": ("user", "assistant"),
    "document": ("user", "assistant"),  # of an assistant in the older version only
    "image": ("user",),
    "search_result": ("user",),
    "text": ("user", "assistant", "system"),
    "tool_addition": ("system",),
    "tool_removal": ("system",),
    "tool_result": ("user",),
}


def blocks_stand_with_their_role(request: PromptRequest, dialect: Dialect) -> None:
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            roles = ROLES.get(block.type, ASSISTANT)
            if message.role not in roles:
                allowed = " or ".join(f"`{role}`" for role in roles)
                why = f"`{block.type}` blocks can only be in {allowed} messages"
                raise InvalidRequest(f"messages.{index}.content.{place}", why)


def assistants_send_no_documents(request: PromptRequest, dialect: Dialect) -> None:
    if not dialect.is_strict or dialect.version != NEW:
        return
    found = [path for path, _ in blocks_of(request.messages, DocumentBlock, role="assistant")]
    if found:
        why = "`document` blocks cannot be in `assistant` messages; found at"
        raise InvalidRequest("messages", f"{why} {', '.join(found[:100])}")


def users_send_no_citations(request: PromptRequest, dialect: Dialect) -> None:
    """What a user writes was not cited by the model; an empty list says the same."""
    if not dialect.is_strict or dialect.version != NEW:
        return
    for path, block in blocks_of(request.messages, TextBlock, role="user", inside=True):
        if block.citations:
            why = "citations are not allowed on text blocks of `user` messages"
            raise InvalidRequest(f"{path}.text.citations", why)


def text_is_there(request: PromptRequest, dialect: Dialect) -> None:
    """A mark on nothing is the more telling fault, so it is looked for first."""
    system = [(f"system.{n}", block) for n, block in enumerate(request.system)]
    texts = chain(system, blocks_of(request.messages, TextBlock, inside=True))
    empty = [(path, block) for path, block in texts if not block.text]
    for path, block in empty:
        if block.cache_control:
            why = "cache_control cannot be set for empty text blocks"
            raise InvalidRequest(f"{path}.text", why)
    for path, _ in empty:
        raise InvalidRequest(path.partition(".")[0], "text content blocks must be non-empty")


def text_is_visible(request: PromptRequest, dialect: Dialect) -> None:
    """Results of tools and documents may be blank; what somebody says may not."""
    _text_is_visible("system", request.system)
    _text_is_visible("messages", (block for _, block in blocks_of(request.messages, TextBlock)))


def _text_is_visible(path: str, blocks: Iterable[TextBlock]) -> None:
    for block in blocks:
        if not block.text.strip():
            raise InvalidRequest(path, "text content blocks must contain non-whitespace text")


def images_are_supported(request: PromptRequest, dialect: Dialect) -> None:
    if dialect.can("images"):
        return
    for path, _ in blocks_of(request.messages, ImageBlock, inside=True):
        why = "this model does not support image input"
        raise InvalidRequest(f"{path}.image", why)


def pdfs_are_supported(request: PromptRequest, dialect: Dialect) -> None:
    """A document behind an address is a PDF. Every model reads PDFs, if the server can."""
    if dialect.can("pdfs"):
        return
    why = "this model does not support PDF input"
    if "pdfs" in dialect.lacking:
        why = (
            "this server cannot read PDFs yet; install what does, and start it again: "
            'pip install "minimsg[pdf]"'
        )
    for path, block in blocks_of(request.messages, DocumentBlock, inside=True):
        if isinstance(block.source, (Base64PdfSource, UrlSource)):
            raise InvalidRequest(f"{path}.document", why)


def sources_are_in_the_request(request: PromptRequest, dialect: Dialect) -> None:
    for path, block in blocks_of(request.messages, ImageBlock, DocumentBlock, inside=True):
        if isinstance(block.source, (UrlSource, FileSource)):
            why = f"type '{block.source.type}' is not supported; send the content itself"
            if isinstance(block.source, UrlSource):
                why += f" ({URLS})"
            raise InvalidRequest(f"{path}.{block.type}.source", why)
    for path, _ in blocks_of(request.messages, ContainerUploadBlock):
        raise InvalidRequest(path, "container_upload needs code execution, which is not run here")


def citations_are_for_all_or_none(request: PromptRequest, dialect: Dialect) -> None:
    wanted: dict[str, bool] = {}
    for path, block in blocks_of(request.messages, DocumentBlock, SearchResultBlock, inside=True):
        wants = bool(block.citations and block.citations.enabled)
        if wanted.setdefault(block.type, wants) != wants:
            why = f"citations must be enabled for all `{block.type}` blocks or for none"
            raise InvalidRequest(f"{path}.{block.type}.citations", why)
