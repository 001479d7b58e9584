"""A server that says what a test has it say, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, object]  # bytes, or what is sent as JSON


class Cut(bytes):
    """The beginning of an answer, of which the rest never comes."""


@dataclass
class Pretending:
    """Answers by `METHOD /path`; the last one of several is repeated. The rest is 404."""

    url: str
    answers: dict[str, list[Answer]]
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # with the query

    def answer(self, route: str) -> Answer:
        left = self.answers.get(route)
        if not left:
            return 404, error("not_found_error", "Not found")
        return left.pop(0) if len(left) > 1 else left[0]


def error(kind: str, message: str) -> object:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


@contextmanager
def pretending(**answers: Answer | list[Answer]) -> Iterator[Pretending]:
    """`pretending(GET_batches=(200, {...}), POST_batches_x_cancel=...)`."""
    routes = {
        f"{name.partition('_')[0]} /v1/messages/{name.partition('_')[2].replace('__', '/')}": (
            found if isinstance(found, list) else [found]
        )
        for name, found in answers.items()
    }

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            said.headers.append({name.lower(): value for name, value in self.headers.items()})
            said.bodies.append(self.rfile.read(int(self.headers.get("content-length", 0))))
            said.asked.append(f"{self.command} {self.path}")
            status, found = said.answer(f"{self.command} {self.path.partition('?')[0]}")
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            is_cut = isinstance(body, Cut)
            self.send_header("content-length", str(len(body) + is_cut))
            self.end_headers()
            self.wfile.write(body)
            if is_cut:
                self.rfile.read(1)  # until the client goes

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        said = Pretending(f"http://127.0.0.1:{server.server_port}", routes)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield said
        finally:
            server.shutdown()
            thread.join()
