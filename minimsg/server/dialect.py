"""From the headers of a request and the settings of the server to the `Dialect` it speaks.

The Messages and models routes ask. Profile `strict` refuses an API version or a beta that the
hosted API would not know, version first; `compat` reads an unknown version as the older
one, which takes more, and skips unknown betas. Next: `protocol/dialect.py`.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web
from multidict import CIMultiDictProxy

from minimsg.config import ServerConfig
from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.betas import KNOWN
from minimsg.protocol.dialect import NEW, OLD, Dialect, Version
from minimsg.server.state import SERVER, Server

VERSIONS: Final[dict[str, Version]] = {OLD: OLD, NEW: NEW}
MAX_SHOWN_CHARS: Final = 100  # of a header's value that an error quotes


def dialect_of(request: web.Request) -> Dialect:
    """How to read `request`. Raises InvalidRequest."""
    server = request.app[SERVER]
    return from_headers(request.headers, server.config, server.lacking)


def from_headers(
    headers: CIMultiDictProxy[str], config: ServerConfig, lacking: frozenset[str] = frozenset()
) -> Dialect:
    """How a server with `config` and a model `lacking` some features reads a request.

    Raises InvalidRequest.
    """
    is_strict = config.profile == "strict"
    return Dialect(
        profile="strict" if is_strict else "compat",
        version=_version(headers, is_strict),
        betas=_betas(headers, is_strict),
        lacking=lacking,
        without=frozenset(config.without),
        drops_server_tools=config.drop_server_tools,
    )


def own_dialect(server: Server) -> Dialect:
    """What the server can do, whatever a request asks for."""
    return Dialect(lacking=server.lacking, without=frozenset(server.config.without))


def _version(headers: CIMultiDictProxy[str], is_strict: bool) -> Version:
    given = ", ".join(headers.getall("anthropic-version", []))
    if given in VERSIONS:
        return VERSIONS[given]
    if is_strict:
        shown = given[:MAX_SHOWN_CHARS]
        why = f'"{shown}" is not a valid version' if given else "header is required"
        raise InvalidRequest("anthropic-version", why)
    return OLD


def _betas(headers: CIMultiDictProxy[str], is_strict: bool) -> frozenset[str]:
    """The header may come several times, with a list of names each time."""
    names = ",".join(headers.getall("anthropic-beta", [])).split(",")
    betas = frozenset(name.strip() for name in names) - {""}
    if len(betas) > LIMITS.betas:
        raise InvalidRequest("anthropic-beta", f"{len(betas)} names > {LIMITS.betas} maximum")
    unknown = sorted(betas - KNOWN)
    if unknown and is_strict:
        shown = ", ".join(f"`{name[:MAX_SHOWN_CHARS]}`" for name in unknown)
        raise InvalidRequest("", f"Unexpected value(s) {shown} for the `anthropic-beta` header.")
    return betas & KNOWN
