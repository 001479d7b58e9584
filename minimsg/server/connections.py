"""One connection: bytes that are no request, clients that are slow, read nothing or half close.

aiohttp turns bytes into requests and has no public way to change what happens when it
cannot. `Connection` fills the gaps: the refusal comes in the API's envelope, a request's
head comes in time, a reply is read in time, and who has sent all it will may still read.
Knows aiohttp's protocol class from inside, to which `tests/server/test_raw_http.py` holds
it; knows nothing of routes. Requests that could be read go to `middleware.py`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from aiohttp import EMPTY_PAYLOAD, StreamReader, web
from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import BadHttpMessage, BadHttpMethod, HttpProcessingError, LineTooLong
from aiohttp.web_protocol import _ErrInfo

from minimsg import __version__
from minimsg.errors import (
    HeadersTooLarge,
    InvalidRequest,
    MethodNotAllowed,
    RequestError,
    RequestTimeout,
)
from minimsg.limits import LIMITS
from minimsg.protocol.message import new_id
from minimsg.server.respond import as_request_error, error_response
from minimsg.server.state import REQUEST_ID, SERVER

logger = logging.getLogger(__name__)

# What may be written into a connection without meaning anything to its client: an interim
# response (RFC 9110, 15.2.1), unless a handler that has begun to answer names something else.
FILLER: Final = web.RequestKey("filler", bytes)
INTERIM: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

GRACE_S: Final = 0.03  # in which most clients that stop sending have got their reply
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 1.0  # between two fillers; it doubles each time

METHODS: Final = "DELETE, GET, HEAD, OPTIONS, POST"  # of all routes; no parser knows a made-up one
TLS: Final = "Received HTTPS traffic on an HTTP port"  # aiohttp's words


class Runner(web.AppRunner):
    """aiohttp's runner, with our connections."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return Connections(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            write_timeout_s=self.app[SERVER].config.write_timeout_s,
            **made._kwargs,
        )


class Connections(web.Server):
    """Makes a `Connection` for every client."""

    def __call__(self) -> web.RequestHandler:
        return Connection(
            self,
            loop=self._loop,
            max_line_size=LIMITS.header_line_bytes,
            max_field_size=LIMITS.header_line_bytes,
            max_headers=LIMITS.headers,
            keepalive_timeout=LIMITS.idle_timeout_s,
            **self._kwargs,
        )


class Connection(web.RequestHandler):
    """One client's connection. Requests are read ahead and answered one by one."""

    __slots__ = ("_body", "_head_timer", "_write_timeout_s", "_write_timer")

    def __init__(self, manager: web.Server, *, write_timeout_s: float, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._body: StreamReader = EMPTY_PAYLOAD  # of the latest request
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timeout_s = write_timeout_s
        self._write_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Bytes of the client: requests, parts of them, or neither."""
        num_before = self._request_count
        super().data_received(data)
        if self._request_count > num_before:
            self._stop_head_timer()
            self._look_at_requests()
        elif data and self._is_idle and self._head_timer is None:
            limit_s = LIMITS.header_timeout_s
            self._head_timer = self._loop.call_later(limit_s, self._refuse_late_head)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks whether to go on
        """Go on only if a whole request is there and its reply is not.

        A client that has left and one that only stopped sending look alike until something
        is written, which the system of the one that has left refuses.
        """
        if self._is_idle or not self._body.is_eof():
            return False
        self._loop.call_later(GRACE_S, self._write_fillers, FIRST_PAUSE_S)
        return True

    def pause_writing(self) -> None:
        """The client does not read, and has its time to begin; whoever writes waits for it."""
        super().pause_writing()
        if self.transport is not None:
            drop = self.transport.abort
            self._write_timer = self._loop.call_later(self._write_timeout_s, drop)

    def resume_writing(self) -> None:
        """The client has read."""
        self._stop_write_timer()
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed, by whom ever."""
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what reached no handler, or failed around it, and close the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("a reply that has begun cannot become an error")
        request_id = request[REQUEST_ID] = request.get(REQUEST_ID) or new_id("req_")
        if isinstance(exc, HttpProcessingError | RequestTimeout):
            request._version = HttpVersion11  # of the reply; else it would be 1.0
            error = _refusal(exc)
            logger.info("%s not a request %d: %s", request_id, error.status, _kind(exc))
        else:
            cause = exc if isinstance(exc, Exception) else TimeoutError()
            error = as_request_error(cause, request_id)
        response = error_response(error, request_id)
        response.headers["request-id"] = request_id
        response.headers["server"] = f"minimsg/{__version__}"
        response.force_close()
        return response

    def log_exception(self, *args: Any, **settings: Any) -> None:
        """Log, but not once more that a body could not be read: its handler has answered that."""
        if not isinstance(settings.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **settings)

    @property
    def _is_idle(self) -> bool:
        """Whether the next request is awaited, and nothing else."""
        return self._waiter is not None and not self._waiter.done()

    def _look_at_requests(self) -> None:
        """Refuse what aiohttp lets pass, and end a body whose end will never come."""
        for index, (message, _) in enumerate(self._messages):
            if isinstance(message, _ErrInfo):
                if not self._body.is_eof():
                    self._body.set_exception(web.RequestPayloadError("not HTTP"))
            elif not _is_sound(message):
                self._messages[index] = (_ErrInfo(400, BadHttpMessage(""), ""), EMPTY_PAYLOAD)
        self._body = self._messages[-1][1]

    def _refuse_late_head(self) -> None:
        self._head_timer = None
        if self._waiter is not None and not self._waiter.done():
            error = RequestTimeout(
                f"The headers of the request did not arrive within {LIMITS.header_timeout_s:g} s."
            )
            self._messages.append((_ErrInfo(error.status, error, ""), EMPTY_PAYLOAD))
            self._waiter.set_result(None)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _write_fillers(self, pause_s: float) -> None:
        """Find out, again and again, whether the client of a half-closed connection has left."""
        request = self._current_request
        if self._is_idle or (request is not None and request.version < HttpVersion11):
            self.force_close()
        if self.transport is None:
            return
        if not self._messages:
            self.close()  # after the reply that is being made
        if request is not None:
            self.transport.write(request.get(FILLER, INTERIM))
        next_pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._loop.call_later(pause_s, self._write_fillers, next_pause_s)


def _is_sound(message: RawRequestMessage) -> bool:
    """Whether version and framing are HTTP/1's; both of aiohttp's parsers take more than that."""
    coding = message.headers.get("transfer-encoding", "chunked")
    is_chunked = coding.isascii() and coding.lower() == "chunked"  # a Kelvin sign becomes a k
    return is_chunked and message.version in (HttpVersion10, HttpVersion11)


def _refusal(exc: HttpProcessingError | RequestTimeout) -> RequestError:
    """What the client is told; never what it sent, which aiohttp's messages quote."""
    if isinstance(exc, RequestTimeout):
        return exc
    if isinstance(exc, LineTooLong):
        return HeadersTooLarge(f"A header has more than {LIMITS.header_line_bytes} bytes.")
    if isinstance(exc, BadHttpMethod) and " HTTP/1." in exc.message:  # else it is another protocol
        return MethodNotAllowed("Method Not Allowed", headers={"allow": METHODS})
    return InvalidRequest("", "The request is not valid HTTP.")


def _kind(exc: HttpProcessingError | RequestTimeout) -> str:
    """What the log is told, without a byte of the client's."""
    is_tls = isinstance(exc, HttpProcessingError) and exc.message == TLS
    return "TLS, where http:// is spoken" if is_tls else type(exc).__name__
