"""Signatures of thinking blocks: the thinking itself, compressed, under a key of this server.

A client sends a block back with its signature. That says whether the server wrote it,
and, where the block was shown as omitted, what it was: nothing has to be kept here.

    base64url( version, 1 byte | HMAC-SHA256 of the rest, 32 bytes | zlib(thinking) )

The server's key is made once and lies in the data folder, readable by its owner only;
every tenant signs with a key of its own that is made from it, so that nobody can have a
stranger's signature opened. The signature is no secret: it hides the thinking from
nobody. Nothing is inflated before its MAC has been found right.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.content import ThinkingBlock
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.options import DisabledThinking
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import blocks_of

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=PromptRequest)

VERSION: Final = b"\x01"
MAC_BYTES: Final = 32
KEY_BYTES: Final = 32
KEY_FILE: Final = "signing.key"


@dataclass(frozen=True, slots=True)
class Seal:
    """Signs the thinking of one tenant, and knows it again. `key` is in hex, to travel as JSON."""

    key: str = field(repr=False)

    @classmethod
    def of(cls, tenant: str, server_key: bytes) -> Seal:
        """The seal of `tenant`."""
        return cls(hmac.digest(server_key, f"tenant {tenant}".encode(), "sha256").hex())

    def sign(self, thinking: str) -> str:
        """The signature of a block; the same each time."""
        signed = zlib.compress(thinking.encode())
        return urlsafe_b64encode(VERSION + self._mac(signed) + signed).decode()

    def open(self, signature: str) -> str | None:
        """What the block said that has this signature; None if it is not of this seal."""
        if len(signature) > LIMITS.signature_chars:
            return None
        with suppress(ValueError):  # no base64
            data = urlsafe_b64decode(signature)
            mac, signed = data[1 : 1 + MAC_BYTES], data[1 + MAC_BYTES :]
            is_ours = data[:1] == VERSION and hmac.compare_digest(mac, self._mac(signed))
            # Other characters than base64's are skipped in decoding: they make it another text.
            if is_ours and urlsafe_b64encode(data).decode() == signature:
                return zlib.decompressobj().decompress(signed, LIMITS.body_bytes).decode()
        return None

    def _mac(self, signed: bytes) -> bytes:
        return hmac.digest(bytes.fromhex(self.key), VERSION + signed, "sha256")


def unsealed(request: R, seal: Seal, dialect: Dialect) -> R:
    """`request` with the thinking that was omitted; `strict` takes none that is not ours.

    Raises InvalidRequest.
    """
    is_off = request.thinking is None or isinstance(request.thinking, DisabledThinking)
    if is_off and dialect.is_strict:
        return request  # as hosted: such thinking is not read
    found: dict[str, ThinkingBlock] = {}
    chars_left = LIMITS.body_bytes
    for path, block in blocks_of(request.messages, ThinkingBlock):
        thinking = seal.open(block.signature)
        if dialect.is_strict and (thinking is None or block.thinking not in ("", thinking)):
            raise InvalidRequest(path, "Invalid `signature` in `thinking` block")
        if thinking and not block.thinking:
            found[path] = block.model_copy(update={"thinking": thinking})
            chars_left -= len(thinking)
        if chars_left < 0:
            raise InvalidRequest("messages", f"thinking of more than {LIMITS.body_bytes} chars")
    return _with_blocks(request, found) if found else request


def _with_blocks(request: R, blocks: Mapping[str, ThinkingBlock]) -> R:
    """`request` with other blocks at some paths."""
    messages = [
        message.model_copy(
            update={
                "content": [
                    blocks.get(f"messages.{index}.content.{place}", block)
                    for place, block in enumerate(message.content)
                ]
            }
        )
        for index, message in enumerate(request.messages)
    ]
    return request.model_copy(update={"messages": messages})


def server_key(folder: Path) -> bytes:
    """The key in the data folder, made there if there is none; else, with a warning, a fresh one.

    With a fresh one what was signed before the server's start is not known again.
    """
    file = folder / KEY_FILE
    try:
        with suppress(FileNotFoundError):
            return _read(file)
        _make(file)
        return _read(file)
    except (OSError, ValueError) as error:
        logger.warning("%s: %s; thinking is signed with a key for this run only", file, error)
        return secrets.token_bytes(KEY_BYTES)


def _read(file: Path) -> bytes:
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"{len(key)} bytes, not the {KEY_BYTES} of a key")
    return key


def _make(file: Path) -> None:
    """Write a key that is there whole or not at all; of two servers' the first one stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink()
