"""Which URLs and addresses the server goes to: none that anybody could read as an inner one.

The oracle are the IANA registries of special-purpose addresses, and what getaddrinfo,
browsers and yarl are known to make of odd spellings.
"""

from __future__ import annotations

import pytest
from yarl import URL

from minimsg.server.addresses import checked_url, is_public

INNER = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "168.63.129.16"),
    *("192.0.0.1", "192.0.0.9", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "100::1", "5f00::1"),
    *("2002:7f00:1::", "2002:a00:1::1", "2001:db8::1", "2001:10::1", "2001:20::1", "3fff::1"),
    # Teredo: a public server with an inner client, and the other way round
    *("2001:0:808:808:0:0:80ff:fffe", "2001:0:7f00:1:0:0:f7f7:f7f7"),
    *(
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1%1",
        "fec0::1",
        "ff02::1",
    ),
    *("127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "", "localhost", "8.8.8.8 "),
]
OUTER = [
    *("1.1.1.1", "8.8.8.8", "93.184.215.14", "172.32.0.1", "2606:4700:4700::1111"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:0:808:808:0:0:f7f7:f7f7"),
]


@pytest.mark.parametrize("address", INNER)
def test_an_address_that_is_not_everybodys_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTER)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


HOSTS = [
    *("127.0.0.1", "127.1", "0", "0.0.0.0", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1"),
    *("017700000001", "127.0.0.1.", "127.0.0.0x1", "0x7F.0.0.1", "10.1", "169.254.169.254"),
    *(
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[fe80::1%25eth0]",
        "[::127.0.0.1]",
    ),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "localhost.", "LOCALHOST", "intranet"),
    *("example.com.", "a..example.com", ".example.com", "-a.example.com", "example.com:444"),
    *("user@example.com", "user:pw@example.com", "@example.com", "@1.1.1.1", ":@example.com"),
    *("example.com:", "example.com:0443", "example.com:+443", "1.1.1.1:0443", "/example.com"),
    *("127.0.0.1:6666\\@1.1.1.1", "1.1.1.1\\@127.0.0.1", "example.com\\.evil", "exam ple.com"),
    *(
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "bücher.example",
        "exämple.com",
        "%31%32%37.0.0.1",
        "127%2e0.0.1",
    ),
    *("example.com\t", "exa\nmple.com", "example.com\x00", "example.com:0", "example.com:99999"),
    *("example.0x7f", "a.1", "", "?", "#", "/", "[::1", "1.1.1.1:80", "example.com:80"),
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_could_be_read_as_an_inner_one_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        checked_url(f"https://{host}/a.png")


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com/", "file:///etc/passwd", "ftp://example.com/", "gopher://a.b.com/"),
        *("data:image/png;base64,AAAA", "//example.com/", "/a.png", "", "https:example.com"),
        *(
            "javascript:0",
            "ws://example.com",
            "https://example.com/" + "a" * 2_048,
            " https://a.bc",
        ),
    ],
)
def test_anything_but_a_whole_https_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        checked_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://example.com/a.png?b=c%20d",
            "https://EXAMPLE.com",
            "https://a-b.c_d.example.com:443/",
        ),
        *("https://xn--bcher-kva.example/", "https://1.1.1.1/", "https://[2606:4700::1]/x"),
    ],
)
def test_a_plain_url_is_taken(url: str) -> None:
    assert checked_url(url) == URL(url)


def test_http_is_taken_only_where_it_is_allowed_and_at_its_own_port() -> None:
    assert checked_url("http://example.com:80/", allows_http=True).scheme == "http"
    with pytest.raises(ValueError, match="port"):
        checked_url("http://example.com:443/", allows_http=True)


def test_what_was_asked_for_over_https_never_goes_on_over_http() -> None:
    target, base = "http://example.com/b", URL("https://example.com/a")
    with pytest.raises(ValueError, match=r"it must begin with https://$"):
        checked_url(target, base=base, allows_http=True)
    over_http = base.with_scheme("http")
    assert str(checked_url(target, base=over_http, allows_http=True)) == target


@pytest.mark.parametrize(
    "target",
    [
        *("//127.0.0.1/", "https://localhost/", "http:/x", "\\\\a.bc\\", "//@1.1.1.1/", "//a.bc:/"),
        *("https:x", "https:/x", "https:///a.bc", "///a.bc", "//", "//u@a.bc", "x:y"),
    ],
)
def test_a_redirect_is_a_url_like_the_first(target: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        checked_url(target, base=URL("https://example.com/a"))


@pytest.mark.parametrize(
    ("target", "whole"),
    [
        *(("../b", "/b"), ("/b@c?d=e:f", "/b@c?d=e:f"), ("?b", "/a?b"), ("b/c:d", "/b/c:d")),
        *(("//example.com:443/b", "/b"), ("https://EXAMPLE.com/b", "/b"), ("./b:c", "/b:c")),
    ],
)
def test_a_redirect_may_be_less_than_a_whole_url(target: str, whole: str) -> None:
    base = URL("https://example.com/a")
    assert str(checked_url(target, base=base)) == f"https://example.com{whole}"
