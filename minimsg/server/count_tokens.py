"""POST /v1/messages/count_tokens: how long the prompt of a request would be.

The same functions as for a reply read, check, render and tokenize it, so the number is
that request's `usage.input_tokens`, always.
"""

from __future__ import annotations

from aiohttp import web

from minimsg.server.auth import TENANT
from minimsg.server.body import read_body
from minimsg.server.dialect import dialect_of
from minimsg.server.prepare import count_prompt
from minimsg.server.respond import ignored_header, json_response
from minimsg.server.state import SERVER


async def count_tokens(request: web.Request) -> web.Response:
    """Answer a `TokenCount`. Raises RequestError."""
    server = request.app[SERVER]
    server.check_can_count()
    dialect, body, tenant = dialect_of(request), await read_body(request), request[TENANT]
    # strict counts no files, as hosted
    known = server.known(tenant) if dialect.is_strict else await server.known_of(tenant, body)
    counted = await server.pool.run(count_prompt, body, dialect, known)
    return json_response(counted.answer, headers=ignored_header(counted.ignored))
