"""A server that answers the Messages API by the clock, for tests of the bench client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from aiohttp import web

INPUT_TOKENS, OUTPUT_TOKENS = 100, 3
Event = dict[str, object]

START: Event = {
    "type": "message_start",
    "message": {"usage": {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 1}},
}
DELTA: Event = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "é"},
}
END: Event = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"input_tokens": None, "output_tokens": OUTPUT_TOKENS},
}
STOP: Event = {"type": "message_stop"}
PING: Event = {"type": "ping"}
WHOLE = [START, PING, DELTA, DELTA, END, STOP]


class StandIn:
    """What the server saw, and how it answers: set the attributes to change it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.paths: list[str] = []
        self.running = 0
        self.most_running = 0
        self.events: list[Event] = WHOLE
        self.status = 200
        self.answer: object = {"type": "error", "error": {"type": "overloaded_error"}}
        self.counts_tokens = True
        self.delay_s = 0.0
        self.after_warm_up: dict[str, object] = {}  # attributes to set after the first answer

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/messages/count_tokens", self.count)
        app.router.add_post("/v1/messages", self.messages)
        app.router.add_route("*", "/elsewhere", self.messages)
        return app

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "stand-in"}]})

    async def count(self, request: web.Request) -> web.Response:
        """Ten tokens of template and two a word."""
        if not self.counts_tokens:
            return web.json_response({}, status=404)
        text = (await request.json())["messages"][0]["content"]
        return web.json_response({"input_tokens": 10 + 2 * len(text.split())})

    async def messages(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        self.bodies.append(await request.json())
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.delay_s)
            if self.status != 200:
                headers = {"location": "/elsewhere"}
                return web.json_response(self.answer, status=self.status, headers=headers)
            return await self._stream(request, self.events)
        finally:
            self.running -= 1
            vars(self).update(self.after_warm_up)

    async def _stream(self, request: web.Request, events: Iterable[Event]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            await response.write(data[:20])
            await response.write(data[20:])
        return response
