"""Which URLs the server may go to on behalf of a client: public ones, plainly written.

Whatever another parser, resolver or router could read otherwise is refused rather than
understood: numbers that are no plain IPv4 address, dots at the end, names of one word,
names in other scripts, users, other ports. An address that carries another one inside
(IPv4-mapped, NAT64, 6to4, Teredo) is what it carries.
Knows text and numbers, no network; `fetch.py` goes there.
Source: the IANA registries of special-purpose addresses, RFC 6052, RFC 3056, RFC 4380.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from yarl import URL

MAX_CHARS: Final = 2_048
PLAIN: Final = re.compile(r"[!-\[\]-~]+")  # printable ASCII without a backslash
# The last part is a word: what resolvers take for a number (0x7f.1, 127.1, 2130706433) is none.
NAME: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)+[a-z](?:[a-z0-9-]{1,62})")
WITH_HOST: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//([^/?#]+)(?:[/?#].*)?", re.IGNORECASE)
WITHOUT: Final = re.compile(r"(?!//)[^:/?#]*(?:[/?#].*)?")  # a path or less, beside a base

# Beside what `is_global` knows, which differs between versions of Python.
OFF_LIMITS_4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carriers' own
        "168.63.129.16/32",  # a cloud's own services, at a public address
        "192.0.0.0/24",  # protocols' own; one cloud's metadata among them
        "192.88.99.0/24",  # relays of 6to4
        "198.18.0.0/15",  # benchmarks
        "224.0.0.0/3",  # many at once, and what is reserved
    )
)
GLOBAL_6: Final = IPv6Network("2000::/3")  # all that has been given out
OFF_LIMITS_6: Final = tuple(
    IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16")
)
NAT64: Final = IPv6Network("64:ff9b::/96")


def checked_url(text: str, *, base: URL | None = None, allows_http: bool = False) -> URL:
    """`text`, which may be relative to `base`, if the server may go there as far as it shows.

    What was asked for over https never goes on over http. Raises ValueError, which says why not.
    """
    if len(text) > MAX_CHARS:
        raise ValueError(f"it has {len(text)} characters > {MAX_CHARS} maximum")
    if not PLAIN.fullmatch(text):
        raise ValueError("only printable ASCII without spaces and backslashes is taken")
    _check_spelling(text, has_base=base is not None)
    url = URL(text) if base is None else base.join(URL(text))
    is_safe = base is not None and base.scheme == "https"
    schemes = ("https", "http") if allows_http and not is_safe else ("https",)
    if url.scheme not in schemes:
        raise ValueError(f"it must begin with {' or '.join(f'{name}://' for name in schemes)}")
    if url.port != (443 if url.scheme == "https" else 80):
        raise ValueError("its port must be that of its scheme")
    _check_host(url.raw_host or "", url.raw_authority)
    return url.with_fragment(None)


def _check_spelling(text: str, *, has_base: bool) -> None:
    """Before anything is parsed: a parser may drop an empty user, and read `+443` as a number."""
    found = WITH_HOST.fullmatch(text)
    if found is None and not (has_base and WITHOUT.fullmatch(text)):
        raise ValueError("its scheme must be followed by :// and a host")
    authority = "" if found is None else found[1]
    if "@" in authority:
        raise ValueError("it must not name a user")
    if not re.fullmatch(r"(?:\[[^]]*\]|[^]:[]*)(?::(?:443|80))?", authority):
        raise ValueError("its port must be that of its scheme")


def _check_host(host: str, authority: str) -> None:
    if authority.startswith("[") or re.fullmatch(r"[0-9.]+", host):
        if not is_public(host):
            raise ValueError("its host is no public address")
    elif not NAME.fullmatch(host) or len(host) > 253:
        raise ValueError("its host must be a name with a domain, in ASCII, or a plain address")


def is_public(address: str) -> bool:
    """Whether `address` in its usual spelling belongs to anybody on the internet."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _is_public_4(found)
    if found.scope_id:
        return False
    if carried := _carried(found):
        return all(_is_public_4(inner) for inner in carried)
    is_known = found in GLOBAL_6 and found.is_global
    return is_known and not any(found in network for network in OFF_LIMITS_6)


def _is_public_4(address: IPv4Address) -> bool:
    return address.is_global and not any(address in network for network in OFF_LIMITS_4)


def _carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The addresses inside `address` that packets to it may reach."""
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    return address.teredo or ()
