"""The query string of a list: which part of it is asked for.

Knows the fields of the question's own type, and leaves out what they are not. Next:
`protocol/paging.py`.
"""

from __future__ import annotations

from typing import TypeVar

from aiohttp import web

from minimsg.protocol.validation import validate
from minimsg.protocol.wire import Wire
from minimsg.server.dialect import dialect_of

Q = TypeVar("Q", bound=Wire)


def read_query(request: web.Request, kind: type[Q]) -> Q:
    """What is asked for; a name that ends in `[]` may come several times. Raises InvalidRequest."""
    names = [field.alias or name for name, field in kind.model_fields.items()]
    query = request.query
    given = {
        name: query.getall(name) if name.endswith("[]") else query[name]
        for name in names
        if name in query
    }
    return validate(kind, given, dialect_of(request)).request
