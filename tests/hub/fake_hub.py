"""A server on the loopback with the few routes of the hub that a download needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """The routes of the hub that a download needs, serving `files` of `org/repo`."""

    files: dict[str, bytes]
    hashes: dict[str, str] = field(default_factory=dict)  # lies about a file's SHA-256
    cut_once: str | None = None  # the file whose first transfer breaks off in the middle
    ranges: list[str] = field(default_factory=list)
    fetched: set[str] = field(default_factory=set)
    address: str = ""

    def info(self) -> dict[str, object]:
        siblings = [
            {
                "rfilename": name,
                "size": len(data),
                "blobId": hashlib.sha1(data).hexdigest(),
                "lfs": {"sha256": self.sha256(name), "size": len(data), "pointerSize": 130},
            }
            for name, data in self.files.items()
        ]
        card = {"license": "apache-2.0"}
        return {"id": "org/repo", "sha": SHA, "siblings": siblings, "cardData": card}

    def sha256(self, name: str) -> str:
        return self.hashes.get(name, hashlib.sha256(self.files[name]).hexdigest())


def handler_of(fake: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def answer(self, *, with_body: bool) -> None:
            path = self.path.split("?")[0]
            if path.startswith("/api/models/org/repo"):
                body = json.dumps(fake.info()).encode()
                self.send(200, {"Content-Type": "application/json"}, body, with_body)
            elif path.startswith(f"/org/repo/resolve/{SHA}/"):
                self.file(path.rsplit("/", 1)[1], with_body)
            else:
                self.send(404, {"X-Error-Code": "RepoNotFound"}, b"", with_body)

        def file(self, name: str, with_body: bool) -> None:
            data = fake.files[name]
            headers = {"X-Repo-Commit": SHA, "ETag": f'"{fake.sha256(name)}"'}
            if not with_body:
                self.send(200, headers, data, False)
                return
            fake.fetched.add(name)
            start = 0
            if wanted := self.headers.get("Range"):
                fake.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").split("-")[0])
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            rest = data[start:]
            if fake.cut_once == name:
                fake.cut_once = None
                self.send(200, headers, rest, True, stop=len(rest) // 2)
                self.close_connection = True
                return
            self.send(206 if start else 200, headers, rest, True)

        def send(
            self,
            status: int,
            headers: Mapping[str, str],
            body: bytes,
            with_body: bool,
            stop: int | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body[:stop])

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
