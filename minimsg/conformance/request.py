"""A step as the bytes of its request: the plainest request, what the step lays over it, `${...}`.

`${expression}` in any text of a step is replaced by its value: of earlier replies, or of
`model`, `nonce` and the other names of a run. A text that is nothing else becomes the value
itself, so `"${null}"` is null. Knows HTTP's words; sockets are in `wire.py`.
"""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from minimsg.conformance.case import Json, Step
from minimsg.conformance.catalog import merge
from minimsg.conformance.expression import Names, evaluate
from minimsg.conformance.functions import MISSING
from minimsg.conformance.settings import Version
from minimsg.conformance.wire import Address

PLAIN: Final[Json] = {
    "model": "${model}",
    "max_tokens": 16,
    "messages": [{"role": "user", "content": "Say hello."}],
}
# What is sent where a step sends nothing of its own, by path.
BODIES: Final[Mapping[str, Json]] = {
    "/v1/messages": PLAIN,
    "/v1/messages/count_tokens": {"model": PLAIN["model"], "messages": PLAIN["messages"]},
}
ABSENT: Final = "-"
BOUNDARY: Final = "----minimsg-conform"
HOLE: Final = re.compile(r"\$\{(.+?)\}(?!\})", re.S)


class NothingToSend(Exception):
    """An earlier reply lacks what this request was to be made of."""


@dataclass(frozen=True)
class Asking:
    """How a run asks: where, as whom, in which version."""

    address: Address
    version: Version
    key: str | None = None

    def at(self, version: Version | None) -> Asking:
        """The same in another version, if there is one to be asked in."""
        return replace(self, version=version or self.version)


@dataclass(frozen=True)
class Request:
    """One request, whole. `pieces` are its bytes; the rest is for a `curl` line."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    pieces: list[bytes]

    def curl(self, address: Address) -> str:
        """A command that sends the same; its key is a name, not the key."""
        scheme = "https" if address.is_tls else "http"
        words = ["curl", "-i", "-N", f"{scheme}://{address.authority}{address.prefix}{self.path}"]
        words += [] if self.method == "POST" and self.body else ["-X", self.method]
        for name, value in self.headers.items():
            if name not in ("host", "content-length", "connection"):
                words += ["-H", f"{name}: {value}"]
        if self.body:
            words += ["--data-binary", self.body.decode(errors="backslashreplace")]
        return " ".join(map(shlex.quote, words)).replace("'$KEY'", '"$KEY"')


def build(step: Step, over: Json, names: Names, asking: Asking) -> Request:
    """The request of `step`, with `over` laid over what it sends."""
    path = str(fill(step.path, names))
    body, content_type = _body(step, over, names)
    if body is not None and step.encoding:
        wbits = zlib.MAX_WBITS | (16 if step.encoding == "gzip" else 0)
        packer = zlib.compressobj(wbits=wbits)
        body = packer.compress(body) + packer.flush()
    headers = _headers(step, body, content_type, names, asking)
    shown = {name: _without_key(value, asking.key) for name, value in headers.items()}
    if step.raw:
        pieces = [_raw(str(fill(piece, names))) for piece in step.raw]
        return Request(step.method, path, shown, body, pieces)
    lines = [f"{step.method} {asking.address.prefix}{path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return Request(step.method, path, shown, body, [head.encode() + (body or b"")])


def fill(value: object, names: Names) -> object:
    """`value` with every `${...}` replaced."""
    match value:
        case str():
            return _fill_text(value, names)
        case Mapping():
            return {str(fill(key, names)): fill(each, names) for key, each in value.items()}
        case list():
            return [fill(each, names) for each in value]
        case _:
            return value


def _fill_text(text: str, names: Names) -> object:
    whole = HOLE.fullmatch(text)
    if whole and "${" not in whole[1]:
        return _filling(whole[1], names)
    return HOLE.sub(lambda hole: str(_filling(hole[1], names)), text)


def _filling(expression: str, names: Names) -> object:
    value = evaluate(expression, names)
    if value is MISSING:
        raise NothingToSend(f"{expression} is missing, which this request is made of")
    return value


def _body(step: Step, over: Json, names: Names) -> tuple[bytes | None, str]:
    if step.text is not None:
        return str(fill(step.text, names)).encode(), "application/json"
    if step.upload is not None:
        return _form(step.upload, names), f"multipart/form-data; boundary={BOUNDARY}"
    under = {} if step.bare else BODIES.get(step.path.partition("?")[0], {})
    sent = merge(merge(under, step.send), over)
    sent = {key: value for key, value in sent.items() if key not in step.without}
    if step.method in ("GET", "HEAD", "DELETE", "OPTIONS") or not (sent or step.bare):
        return None, "application/json"
    return json.dumps(fill(sent, names), ensure_ascii=False).encode(), "application/json"


def _form(fields: Mapping[str, str], names: Names) -> bytes:
    """A multipart form; the field `file` is one, called `name` if there is such a field."""
    parts = []
    for field, value in fields.items():
        if field in ("name", "type"):
            continue
        kind = fields.get("type", "text/plain")
        called = fields.get("name", "note.txt")
        extra = f'; filename="{called}"\r\ncontent-type: {kind}' if field == "file" else ""
        head = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="{field}"{extra}\r\n\r\n'
        parts.append(f"{head}{fill(value, names)}\r\n")
    return ("".join(parts) + f"--{BOUNDARY}--\r\n").encode()


def _headers(
    step: Step, body: bytes | None, content_type: str, names: Names, asking: Asking
) -> dict[str, str]:
    headers = {"host": asking.address.authority, "connection": "close"}
    headers |= {"anthropic-version": asking.version, "accept": "application/json"}
    if asking.key is not None:
        headers["x-api-key"] = asking.key
    if step.encoding:
        headers["content-encoding"] = step.encoding
    if body is not None:
        headers |= {"content-type": content_type, "content-length": str(len(body))}
    elif step.method == "POST":
        headers["content-length"] = "0"
    headers |= {name.lower(): str(fill(value, names)) for name, value in step.headers.items()}
    return {name: value for name, value in headers.items() if value != ABSENT}


def _raw(text: str) -> bytes:
    """TOML cannot hold a byte beyond UTF-8: `\\xNN` stands for one."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())


def _without_key(value: str, key: str | None) -> str:
    return value.replace(key, "$KEY") if key else value
