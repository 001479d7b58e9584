"""GET /v1/models and /v1/models/{id}: the one model that is served, whatever it is called."""

from __future__ import annotations

from aiohttp import web

from minimsg.protocol.models import ModelInfo, ModelsQuery, model_info
from minimsg.protocol.paging import page
from minimsg.server.dialect import dialect_of, own_dialect
from minimsg.server.query import read_query
from minimsg.server.respond import json_response
from minimsg.server.state import SERVER, Server


async def list_models(request: web.Request) -> web.Response:
    """A page of models. Raises InvalidRequest."""
    query = read_query(request, ModelsQuery)
    models = [_served(request.app[SERVER])]
    return json_response(page([m for m in models if m["lifecycle"] in query.lifecycle], query))


async def get_model(request: web.Request) -> web.Response:
    """One model, by its id or an alias. Raises InvalidRequest, NotFound."""
    server = request.app[SERVER]
    dialect_of(request)  # strict asks for a version here too
    server.catalog.find(request.match_info["id"])
    return json_response(_served(server))


def _served(server: Server) -> ModelInfo:
    return model_info(
        server.chat.name, server.chat.created_at, server.max_context, own_dialect(server)
    )
