"""The other end of `pool.py`: a process that prepares big bodies, one after the other.

    python -m minimsg.server.prepare_process FOLDER NAME MAX_CONTEXT DEFAULT_MAX_TOKENS

Opens the model folder itself, reads a line `WORK SIZE` and SIZE bytes from its standard
input, answers with a line `SIZE` and so many bytes of JSON, and ends with its input.
Knows no torch, no aiohttp and no pickle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from pydantic import BaseModel, TypeAdapter

from minimsg.errors import InternalError, InvalidRequest, NotFound, RequestError
from minimsg.prompt.chat import ChatModel
from minimsg.server.prepare import WORK, Counted, Prepared, Served
from minimsg.server.traces import trace


class Failure(BaseModel):
    """A `RequestError` as data."""

    kind: str
    message: str
    error_code: str | None

    def error(self) -> RequestError:
        """The error that was, but for its JSON path, which is in the message."""
        if self.kind == InvalidRequest.__name__:
            return InvalidRequest("", self.message, error_code=self.error_code)
        return KINDS[self.kind](self.message, error_code=self.error_code)


KINDS: Final[dict[str, type[RequestError]]] = {
    kind.__name__: kind for kind in (NotFound, InternalError)
}
REPLY: Final[TypeAdapter[Prepared | Counted | Failure]] = TypeAdapter(Prepared | Counted | Failure)


def main(folder: str, name: str, max_context: str, default_max_tokens: str) -> None:
    """Answer until the input ends."""
    chat = ChatModel.open(Path(folder), name)
    served = Served(chat, int(max_context), int(default_max_tokens))
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not end up between two replies
    while header := requests.readline():
        work, size = header.decode().split()
        answer(WORK[work], requests.read(int(size)), served, replies)


def answer(
    work: Callable[[bytes, Served], Prepared | Counted],
    body: bytes,
    served: Served,
    replies: IO[bytes],
) -> None:
    """Write what `work` makes of `body`, or how it failed, to `replies`."""
    reply = REPLY.dump_json(_attempt(work, body, served))
    replies.write(b"%d\n" % len(reply) + reply)
    replies.flush()


def _attempt(
    work: Callable[[bytes, Served], Prepared | Counted], body: bytes, served: Served
) -> Prepared | Counted | Failure:
    try:
        return work(body, served)
    except RequestError as error:
        return _failure(error)
    except Exception as error:  # the outermost loop of this process
        print(trace(error), file=sys.stderr)
        return _failure(InternalError("The request could not be prepared."))


def _failure(error: RequestError) -> Failure:
    return Failure(kind=type(error).__name__, message=error.message, error_code=error.error_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
