"""From a name to the addresses that the server may go to: all public, or none.

Used by `fetch.py`, which dials what is given here and nothing else; which addresses are
public is in `addresses.py`.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

from minimsg.server.addresses import is_public

DNS_THREADS: Final = 8  # which slow name servers may hold


class NotPublic(OSError):
    """An address that is not for everybody."""


class SystemResolver(AbstractResolver):
    """Asks the system, in threads of its own: a slow name server holds nobody else's."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(DNS_THREADS, thread_name_prefix="resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Every address of `host`. Raises OSError."""

        def look_up() -> list[ResolveResult]:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
            return [result_of(host, port, kind, str(address[0])) for kind, *_, address in found]

        return await asyncio.get_running_loop().run_in_executor(self._threads, look_up)

    async def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class PublicResolver(AbstractResolver):
    """Gives the addresses of a name if all of them are public; those are then dialled."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises OSError."""
        found = await self._resolver.resolve(host, port, family)
        if not found or not all(is_public(one["host"]) for one in found):
            raise NotPublic(host)
        return found

    async def close(self) -> None:
        """The resolver within is the server's, and outlives a request."""


def result_of(host: str, port: int, family: socket.AddressFamily, address: str) -> ResolveResult:
    """One address of `host`, as a connector takes it."""
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST,
    )
