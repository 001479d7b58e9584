"""Which names and web pages the server answers to: the Host and Origin headers, and CORS.

A web page can make a browser send requests to any address. The Host check stops a page
whose name was pointed at this machine (DNS rebinding); the Origin check stops every other
page that was not allowed; both come before a key is looked at or a byte of the body is
read. Clients that are no browsers send no Origin. Allowed pages get their preflight, on
every route, and answers that they may read. Source: Fetch standard, CORS protocol.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.errors import ConfigError, Forbidden
from minimsg.server.respond import Handler

HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/@?#,\s]+)(:\d{0,5})?", re.IGNORECASE)
ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+")
LOOPBACK_ORIGIN: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
HEADER_NAMES: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+(, ?[\w!#$%&'*+.^`|~-]+)*", re.ASCII)

PREFLIGHT_S: Final = "600"  # that a browser may remember the answer
METHODS: Final = "GET, HEAD, POST, DELETE, OPTIONS"
SENT_HEADERS: Final = (  # when a browser does not say which ones it wants to send
    "anthropic-beta, anthropic-dangerous-direct-browser-access, anthropic-version, "
    "authorization, content-type, x-api-key"
)
SHOWN_HEADERS: Final = ", ".join(
    [
        "request-id",
        "retry-after",
        "x-should-retry",
        "minimsg-ignored",
        *(
            f"anthropic-ratelimit-{unit}-{figure}"
            for unit in ("requests", "tokens")
            for figure in ("limit", "remaining", "reset")
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class AllowList:
    """Hosts without their ports, None for any; origins as browsers send them."""

    hosts: frozenset[str] | None
    origins: frozenset[str]

    @classmethod
    def of(cls, config: ServerConfig) -> AllowList:
        """What `config` allows. Raises ConfigError."""
        hosts = frozenset(_configured_host(host) for host in config.allow_host)
        is_checked = hosts or is_loopback(config.host)
        return cls(
            hosts=hosts if is_checked else None,
            origins=frozenset(_configured_origin(origin) for origin in config.allow_origin),
        )

    def has_host(self, header: str | None) -> bool:
        """Whether a request may name the server so; browsers always name it."""
        if self.hosts is None or header is None:
            return True
        name = host_name(header)
        return name is not None and (is_loopback(name) or name in self.hosts)

    def has_origin(self, origin: str) -> bool:
        """Whether web pages of `origin` may call."""
        if LOOPBACK_ORIGIN.fullmatch(origin) or "*" in self.origins:
            return True
        return origin.lower() in self.origins


ALLOWED: Final = web.AppKey("allowed", AllowList)


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse names and web pages that were not allowed; answer preflights. Raises Forbidden."""
    allowed, origin = request.app[ALLOWED], request.headers.get("origin")
    if not allowed.has_host(request.headers.get("host")):
        raise Forbidden("Requests for this Host are not answered; --allow-host adds a name.")
    if origin is None:
        return await handler(request)
    if not allowed.has_origin(origin):
        raise Forbidden("Web pages of this Origin may not call; --allow-origin adds one.")
    if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
        return _preflight(request)
    return await handler(request)


def cors_headers(request: web.Request) -> dict[str, str]:
    """What lets an allowed page read the answer to `request`, whatever it is."""
    origin = request.headers.get("origin")
    if origin is None or not request.app[ALLOWED].has_origin(origin):
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": SHOWN_HEADERS,
        "vary": "origin",
    }


def host_name(header: str) -> str | None:
    """A Host header without its port, in lower case; None if it is none."""
    found = HOST.fullmatch(header)
    return found[1].lower().strip("[]") if found else None


def is_loopback(name: str) -> bool:
    """Whether only this machine is meant by the address or name."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def _preflight(request: web.Request) -> web.Response:
    """No key is needed: browsers send none with this question."""
    wanted = request.headers.get("access-control-request-headers", "")
    return web.Response(
        status=204,
        headers={
            "access-control-allow-methods": METHODS,
            "access-control-allow-headers": (
                wanted if HEADER_NAMES.fullmatch(wanted) else SENT_HEADERS
            ),
            "access-control-max-age": PREFLIGHT_S,
        },
    )


def _configured_host(host: str) -> str:
    name = host_name(host)
    if name is None:
        raise ConfigError(f"--allow-host {host}: expected a host name, such as example.org")
    return name


def _configured_origin(origin: str) -> str:
    sent = origin.lower().rstrip("/")  # as browsers send it
    if origin not in ("*", "null") and not ORIGIN.fullmatch(sent):
        raise ConfigError(f"--allow-origin {origin}: expected * or https://example.org")
    return sent
