"""GET /v1/models and /v1/models/{id}: the one model that is served."""

from __future__ import annotations

from aiohttp import web

from minimsg.errors import NotFound
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.models import ModelInfo, model_info
from minimsg.protocol.paging import PageQuery, page
from minimsg.protocol.validation import validate
from minimsg.server.respond import json_response
from minimsg.server.state import SERVER, Server


async def list_models(request: web.Request) -> web.Response:
    """A page of models. Raises InvalidRequest."""
    known = {name: request.query[name] for name in PageQuery.model_fields if name in request.query}
    query = validate(PageQuery, known, Dialect()).request
    lifecycles = request.query.getall("lifecycle[]", ["active"])
    models = [_served(request.app[SERVER])] if "active" in lifecycles else []
    return json_response(page(models, query))


async def get_model(request: web.Request) -> web.Response:
    """One model. Raises NotFound."""
    info = _served(request.app[SERVER])
    id = request.match_info["id"]
    if id != info["id"]:
        raise NotFound(f"model: {id}")
    return json_response(info)


def _served(server: Server) -> ModelInfo:
    return model_info(server.chat.name, server.chat.created_at, server.max_context)
