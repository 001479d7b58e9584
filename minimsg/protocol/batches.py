"""Message batches as data: what creates one, what is said of it, the lines of its results.

What may be wrong with a batch as a whole is found here, at once and one request after the
other, so that a hundred thousand of them need no more memory than the largest. What a
request asks for is kept as the bytes it came as, and checked when it is its turn.
Knows nothing of where a batch is kept or who runs it. Source: Messages API, batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from minimsg.errors import InvalidRequest, RequestTooLarge
from minimsg.limits import LIMITS
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.envelope import ErrorEvent
from minimsg.protocol.json_parts import Span, check_part, elements, members
from minimsg.protocol.message import Message
from minimsg.protocol.sse import to_json
from minimsg.protocol.validation import parse_json, validate
from minimsg.protocol.wire import JsonObject, Wire

CUSTOM_ID: Final = r"^[a-zA-Z0-9_-]{1,64}$"
Status = Literal["in_progress", "canceling", "ended"]
MAX_SHOWN_CHARS: Final = 200  # of a key that a client made up


class BatchRequest(Wire):
    """One request of a batch; whether `params` can be answered is seen when it runs."""

    custom_id: Annotated[str, Field(pattern=CUSTOM_ID)]
    params: JsonObject


class CreateBatch(Wire):
    """The body of POST /v1/messages/batches; read in parts, never as a whole."""

    requests: Annotated[list[BatchRequest], Field(min_length=1, max_length=LIMITS.batch_requests)]


class RequestCounts(TypedDict):
    """What became of the requests: all are `processing` until the whole batch has ended."""

    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class MessageBatch(TypedDict):
    """A batch; its times are RFC 3339."""

    id: str
    type: Literal["message_batch"]
    processing_status: Status
    request_counts: RequestCounts
    created_at: str
    expires_at: str
    ended_at: str | None
    cancel_initiated_at: str | None
    archived_at: str | None  # its results are gone
    results_url: str | None  # null until there are all of them


class DeletedBatch(TypedDict):
    """The answer to DELETE."""

    id: str
    type: Literal["message_batch_deleted"]


class Succeeded(TypedDict):
    """A request that was answered."""

    type: Literal["succeeded"]
    message: Message


class Errored(TypedDict):
    """A request that could not be answered; the whole envelope."""

    type: Literal["errored"]
    error: ErrorEvent


class NotRun(TypedDict):
    """A request that nobody began."""

    type: Literal["canceled", "expired"]


class BatchResult(TypedDict):
    """A line of the results."""

    custom_id: str
    result: Succeeded | Errored | NotRun


class BatchBody:
    """The body that creates a batch, in memory or a file, and what of it nobody reads."""

    def __init__(self, data: bytes | mmap, dialect: Dialect) -> None:
        self._data = data
        self._dialect = dialect
        self.ignored: list[str] = []  # JSON paths

    def requests(self) -> Iterator[tuple[str, bytes]]:
        """`custom_id` and `params` of each request, in order.

        Raises InvalidRequest, RequestTooLarge: for the first fault, when it is reached.
        """
        seen: set[str] = set()
        for number, span in enumerate(elements(self._data, self._requests_place())):
            if number == LIMITS.batch_requests:
                why = f"List should have at most {number} items after validation"
                raise InvalidRequest("requests", why)
            custom_id, params = self._request(f"requests.{number}", span)
            if custom_id in seen:
                why = f"custom_id '{custom_id}' is not unique in the batch"
                raise InvalidRequest(f"requests.{number}.custom_id", why)
            seen.add(custom_id)
            yield custom_id, params
        if not seen:
            why = "List should have at least 1 item after validation, not 0"
            raise InvalidRequest("requests", why)

    def _requests_place(self) -> int:
        """Where the list begins; all beside it is looked at and left out."""
        found: dict[str, Span] = {}
        for key, span in members(self._data):
            if key in found and self._dialect.is_strict:
                why = f"the key {key[:MAX_SHOWN_CHARS]!r} appears more than once in an object"
                raise InvalidRequest("", f"The request body is not valid JSON: {why}")
            if key != "requests":
                self._leave_out(key[:MAX_SHOWN_CHARS])
                check_part(self._part(key[:MAX_SHOWN_CHARS], span))
            found[key] = span
        if "requests" not in found:
            raise InvalidRequest("requests", "Field required")
        place, _ = found["requests"]
        if self._data[place : place + 1] != b"[":
            raise InvalidRequest("requests", "Input should be a valid list")
        return place

    def _request(self, path: str, span: Span) -> tuple[str, bytes]:
        part = self._part(path, span)
        try:
            custom_id, params, ignored = read_request(part, self._dialect)
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}.{error.path}".rstrip("."), error.why) from None
        for key in ignored:
            self._leave_out(f"{path}.{key}")
        return custom_id, params

    def _part(self, path: str, span: Span) -> bytes:
        """A part, which is no larger than a request may be by itself."""
        start, end = span
        if end - start > LIMITS.body_bytes:
            raise RequestTooLarge(f"{path}: exceeds the maximum size of {LIMITS.body_bytes} bytes.")
        return self._data[start:end]

    def _leave_out(self, path: str) -> None:
        if self._dialect.is_strict:
            raise InvalidRequest(path, "Extra inputs are not permitted")
        if len(self.ignored) == LIMITS.faults:
            raise InvalidRequest("", f"The request has more than {LIMITS.faults} unknown fields")
        self.ignored.append(path)


def read_request(part: bytes, dialect: Dialect) -> tuple[str, bytes, list[str]]:
    """`custom_id` and `params` of one request, and the keys of it that nobody reads.

    Raises InvalidRequest.
    """
    if not part.startswith(b"{"):
        raise InvalidRequest("", "Input should be a valid dictionary")
    checked = validate(BatchRequest, parse_json(part, dialect), dialect)
    start, end = dict(members(part))["params"]
    return checked.request.custom_id, part[start:end], checked.ignored


def succeeded(message: Message) -> bytes:
    """The result of a request that was answered with `message`."""
    message["usage"]["service_tier"] = "batch"
    result: Succeeded = {"type": "succeeded", "message": message}
    return to_json(result).encode()


def errored(error: ErrorEvent) -> bytes:
    """The result of a request that failed."""
    result: Errored = {"type": "errored", "error": error}
    return to_json(result).encode()


def result_line(custom_id: str, kind: str, body: bytes | None) -> bytes:
    """A line of the results: `body` as `succeeded` or `errored` made it, None if it never ran."""
    result = b'{"type":"%b"}' % kind.encode() if body is None else body
    return b'{"custom_id":"%b","result":%b}\n' % (custom_id.encode(), result)
