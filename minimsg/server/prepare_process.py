"""The other end of `pool.py`: a process that prepares big bodies, one after the other.

    python -m minimsg.server.prepare_process FOLDER SETTINGS

Opens the model folder itself, reads a line of JSON, an `Errand`, and so many bytes as it
says from its standard input, answers with a line `SIZE` and so many bytes of JSON, and
ends with its input. Before that it may write lines `@PATH`, of the PDF that it reads, and `@`
(`pdf_guard.py`). Its memory is limited: images and PDFs are unpacked here. Knows no torch, no
aiohttp and no pickle.
"""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from minimsg.errors import InternalError, InvalidRequest, NotFound, RequestError
from minimsg.limits import LIMITS
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.dialect import Dialect
from minimsg.server.explain import Explained, explain_prompt
from minimsg.server.pdf_guard import guarding
from minimsg.server.prepare import (
    Counted,
    Known,
    NamedUrls,
    Prepared,
    Served,
    Settings,
    count_prompt,
    named_urls,
    prepare_message,
)
from minimsg.server.traces import trace


class Failure(BaseModel):
    """A `RequestError` as data."""

    kind: str
    message: str
    error_code: str | None
    details: dict[str, JsonValue]

    @classmethod
    def of(cls, error: RequestError) -> Failure:
        """`error` on its way to another process."""
        return cls(
            kind=type(error).__name__,
            message=error.message,
            error_code=error.error_code,
            details=DETAILS.validate_python(error.details),
        )

    def error(self) -> RequestError:
        """The error that was, but for its JSON path, which is in the message."""
        if self.kind == InvalidRequest.__name__:
            return InvalidRequest(
                "", self.message, error_code=self.error_code, details=self.details
            )
        return KINDS[self.kind](self.message, error_code=self.error_code, details=self.details)


@dataclass(frozen=True, slots=True)
class Errand:
    """What to do with the `size` bytes that follow."""

    work: str
    size: int
    dialect: Dialect
    known: Known


WORK: Final = {
    function.__name__: function
    for function in (prepare_message, count_prompt, explain_prompt, named_urls)
}
KINDS: Final[dict[str, type[RequestError]]] = {
    kind.__name__: kind for kind in (NotFound, InternalError)
}
ERRAND: Final[TypeAdapter[Errand]] = TypeAdapter(Errand)
SETTINGS: Final[TypeAdapter[Settings]] = TypeAdapter(Settings)
DETAILS: Final[TypeAdapter[dict[str, JsonValue]]] = TypeAdapter(dict[str, JsonValue])
BYTES: Final = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")  # of pictures
Reply = Prepared | Counted | Explained | NamedUrls | Failure
REPLY: Final[TypeAdapter[Reply]] = TypeAdapter(Reply, config=BYTES)


def main(folder: str, settings_json: str) -> None:
    """Answer until the input ends."""
    limit_memory(LIMITS.prepare_memory_bytes)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a PDF that ends this process leaves no file
    settings = SETTINGS.validate_json(settings_json)
    chat = ChatModel.open(Path(folder), settings.catalog.served, settings.parsers)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer

    def announce(path: str) -> None:
        replies.write(f"@{path}\n".encode())
        replies.flush()

    served = Served(chat, settings, guarding(announce))
    sys.stdout = sys.stderr  # whatever prints must not end up between two replies
    while line := requests.readline():
        errand = ERRAND.validate_json(line)
        answer(errand, requests.read(errand.size), served, replies)


def limit_memory(most: int) -> None:
    """A body, or a picture in it, that would take more fails; where the system can say so."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def answer(errand: Errand, body: bytes, served: Served, replies: IO[bytes]) -> None:
    """Write what the work makes of `body`, or how it failed, to `replies`."""
    reply = REPLY.dump_json(_attempt(errand, body, served))
    replies.write(b"%d\n" % len(reply) + reply)
    replies.flush()


def _attempt(errand: Errand, body: bytes, served: Served) -> Reply:
    try:
        return WORK[errand.work](body, served, errand.dialect, errand.known)
    except RequestError as error:
        return Failure.of(error)
    except Exception as error:  # the outermost loop of this process
        print(trace(error), file=sys.stderr)
        return Failure.of(InternalError("The request could not be prepared."))


if __name__ == "__main__":
    main(*sys.argv[1:])
