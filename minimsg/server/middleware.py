"""Around every request: its id, its error in the envelope, its line in the log.

Knows nothing of what the handlers do. Log lines hold ids, routes, statuses and times,
never a path or a word that a client sent.
"""

from __future__ import annotations

import logging
import time

from aiohttp import web

from minimsg import __version__
from minimsg.errors import InvalidRequest, MethodNotAllowed, NotFound, RequestError
from minimsg.protocol.message import new_id
from minimsg.server.origin import cors_headers
from minimsg.server.ratelimit import rate_limit_headers
from minimsg.server.respond import Handler, as_request_error, error_response
from minimsg.server.state import REQUEST_ID, SERVER

logger = logging.getLogger(__name__)

CLIENT_LEFT = 499  # what proxies log for a client that did not wait


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, count it while it runs, log it when it ends."""
    request[REQUEST_ID] = new_id("req_")
    started, status = time.monotonic(), CLIENT_LEFT
    try:
        with request.app[SERVER].answering():
            response = await answer(request, handler)
        status = response.status
        return response
    finally:
        resource = request.match_info.route.resource
        route = resource.canonical if resource else "unknown route"
        seconds = time.monotonic() - started
        logger.info("%s %s %d %.3f s", request[REQUEST_ID], route, status, seconds)


async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The handler's response, or its failure in the envelope."""
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as error:
        allow = {"allow": ", ".join(sorted({*error.allowed_methods, "OPTIONS"}))}
        if request.method == "OPTIONS":
            return web.Response(status=204, headers=allow)
        return error_response(
            MethodNotAllowed("Method Not Allowed", headers=allow), request[REQUEST_ID]
        )
    except web.HTTPException as error:
        return error_response(_from_aiohttp(error), request[REQUEST_ID])
    except ConnectionError:  # nobody reads this; aiohttp finds out and closes
        return web.Response(status=CLIENT_LEFT)
    except Exception as error:
        request_id = request[REQUEST_ID]
        return error_response(as_request_error(error, request_id), request_id)


async def expect(request: web.Request) -> None:
    """Say that the body is welcome; any other expectation may be ignored (RFC 9110, 10.1.1)."""
    if request.headers["expect"].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # that was no part of the response


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Signal: what every response carries, whoever made it."""
    response.headers["request-id"] = request.get(REQUEST_ID) or new_id("req_")
    response.headers["server"] = f"minimsg/{__version__}"
    response.headers.update(rate_limit_headers(request))
    response.headers.update(cors_headers(request))


def _from_aiohttp(error: web.HTTPException) -> RequestError:
    if isinstance(error, web.HTTPNotFound):
        return NotFound("Not found; GET / lists the routes.")
    return InvalidRequest("", error.reason)
