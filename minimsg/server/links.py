"""What the links in answers begin with: what the server is told, else how it was called.

Nobody vouches for X-Forwarded-Proto and the like, so they are not read: a server behind a
proxy that ends TLS is told with --public-url. Knows no route.
"""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.errors import ConfigError
from minimsg.server.origin import HOST
from minimsg.server.state import SERVER

PUBLIC_URL: Final = re.compile(r"https?://[\w.:\[\]-]+(/[\w.~/-]*)?", re.ASCII)


def check_public_url(config: ServerConfig) -> None:
    """Raise ConfigError for one that no link can begin with."""
    url = config.public_url
    if url is not None and not PUBLIC_URL.fullmatch(url):
        raise ConfigError(
            f"--public-url {url}: expected an address such as https://llm.example.org"
        )


def link(request: web.Request, path: str) -> str:
    """`path` as whoever sent `request` reaches it; that name has passed `origin.py`."""
    configured = request.app[SERVER].config.public_url
    if configured is not None:
        return configured.rstrip("/") + path
    host = request.headers.get("host", "")
    if not HOST.fullmatch(host):  # old clients send none
        address, port = request.get_extra_info("sockname")[:2]
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return f"{request.scheme}://{host}{path}"
