"""Who is asking: an API key to the name of a tenant, before anything else is looked at.

Keys come from `--keys-file` (a JSON object: tenant's name -> key or list of keys) and from
the environment, `MINIMSG_API_KEYS="alice=key,bob=sha256:<hex>"`. A key stands there plain
or as `sha256:` and the 64 hex digits of its SHA-256. Only digests are kept; what is stored,
cached or limited belongs to the name. Without any key everybody is the tenant `local`, and
then the server listens only where no other machine can reach it.

Every route needs a key but those of `OPEN`, told by the route that was found, not by the
path that was sent. Next: `origin.py`, which comes before, and `ratelimit.py`, after.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.errors import ConfigError, Unauthorized
from minimsg.server.origin import is_loopback
from minimsg.server.respond import Handler

ENVIRONMENT: Final = "MINIMSG_API_KEYS"
LOCAL: Final = "local"  # the tenant of a server without keys

# Probes and scrapers have no key: they learn whether the server is up and its figures as a
# whole, never whose they are. The inspector's files hold no data: the page asks for a key and
# sends it. All else is closed.
PROBES: Final = frozenset({"/health", "/health/live", "/health/ready", "/metrics"})
OPEN: Final = PROBES | {"/inspect", "/inspect/{file}"}

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY: Final = re.compile(r"\S{1,1024}")  # a header's value loses the spaces around it
DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")

Named = tuple[str, str]  # a tenant and one of its keys, plain or as a digest


class Keys:
    """The tenants by the digests of their keys. Empty: no key is asked for."""

    def __init__(self, named: Iterable[Named] = ()) -> None:
        """Raises ConfigError, which never quotes a key."""
        self._tenants: dict[bytes, str] = {}
        for name, key in named:
            digest = _digest(name, key)
            if self._tenants.setdefault(digest, name) != name:
                other = self._tenants[digest]
                raise ConfigError(f"the tenants {other} and {name} have the same API key")

    def __bool__(self) -> bool:
        return bool(self._tenants)

    @property
    def tenants(self) -> list[str]:
        """The names, sorted."""
        return sorted(set(self._tenants.values()))

    def tenant(self, headers: Mapping[str, str]) -> str:
        """Whose request this is; `x-api-key` decides if there is a bearer token too.

        Raises Unauthorized.
        """
        if not self._tenants:
            return LOCAL
        key = _presented(headers)
        if key is None:
            raise Unauthorized("x-api-key header is required", headers=CHALLENGE)
        found = self._find(sha256(key.encode("utf-8", "surrogateescape")).digest())
        if found is None:
            raise Unauthorized("invalid x-api-key", headers=CHALLENGE)
        return found

    def _find(self, digest: bytes) -> str | None:
        """Looks at every key, so that the time taken tells nothing of which one is near."""
        matches = [
            name for known, name in self._tenants.items() if hmac.compare_digest(known, digest)
        ]
        return matches[0] if matches else None


CHALLENGE: Final = {"www-authenticate": "Bearer"}  # RFC 9110, 11.6.1: every 401 has one
KEYS: Final = web.AppKey("keys", Keys)
TENANT: Final = web.RequestKey("tenant", str)


@web.middleware
async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Name the tenant of the request, or let nobody in. Raises Unauthorized."""
    resource = request.match_info.route.resource  # None: no such route, or not that method
    if resource is None or resource.canonical not in OPEN:
        request[TENANT] = request.app[KEYS].tenant(request.headers)
    return await handler(request)


def open_keys(config: ServerConfig, environment: Mapping[str, str] = os.environ) -> Keys:
    """The keys that `config` and the environment name.

    Raises ConfigError: keys that cannot be read, and none at all where others can connect.
    """
    named = [*_in_environment(environment.get(ENVIRONMENT, ""))]
    if config.keys_file is not None:
        named += _in_file(config.keys_file)
    keys = Keys(named)
    if not (keys or config.insecure or is_loopback(config.host)):
        raise ConfigError(
            f"other machines can reach {config.host!r} and there are no API keys: name some with "
            f"--keys-file or {ENVIRONMENT}, listen on 127.0.0.1, or say --insecure"
        )
    return keys


def _presented(headers: Mapping[str, str]) -> str | None:
    key = headers.get("x-api-key")
    if key is not None:
        return key
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _digest(name: str, key: str) -> bytes:
    """The SHA-256 of `key`, which may be written as one."""
    if not NAME.fullmatch(name):  # not shown: a key may stand in its place
        raise ConfigError(
            "API keys: a tenant's name is 1 to 64 letters, digits, dots, dashes and underscores"
        )
    if stated := DIGEST.fullmatch(key):
        return bytes.fromhex(stated[1])
    if key.startswith("sha256:") or not KEY.fullmatch(key):
        raise ConfigError(
            f"API keys: a key of {name} is neither 1 to 1,024 characters without spaces nor "
            "sha256: and 64 hex digits"
        )
    return sha256(key.encode()).digest()


def _in_environment(text: str) -> Iterator[Named]:
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, is_pair, key = entry.partition("=")
        if not is_pair:  # not shown: it may be a key
            raise ConfigError(f"{ENVIRONMENT}: expected name=key, and a comma between two")
        yield name, key


def _in_file(file: Path) -> Iterator[Named]:
    expected = "expected a JSON object: tenant's name -> key or list of keys"
    try:
        tenants = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_without_doubles)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: {error}; {expected}") from None
    if not isinstance(tenants, dict) or not tenants:
        raise ConfigError(f"{file}: {expected}")
    for name, given in tenants.items():
        keys = given if isinstance(given, list) else [given]
        if not keys or not all(isinstance(key, str) for key in keys):
            raise ConfigError(f"{file}: {expected}")
        yield from ((name, key) for key in keys)


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON lets a name stand twice and Python keeps the last: that would lose keys unseen."""
    tenants = dict(pairs)
    if len(tenants) < len(pairs):
        raise ValueError("a name stands there twice")
    return tenants
