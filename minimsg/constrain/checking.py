"""Which reading of a client's schema the grammar engine takes, or why it takes none.

Readings are tried in order: with objects closed (`schema.py`), then as they are. Where the
client counts on its schema, no reading is an error. For any other tool, what cannot be
enforced is left out, and if even that does not help, None stands for any object.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

from minimsg.constrain import lark
from minimsg.constrain.calls import Body
from minimsg.constrain.compiler import Compiler
from minimsg.constrain.recursion import Unsatisfiable
from minimsg.constrain.refusal import refusal
from minimsg.constrain.risk import TOO_LONG, has_long_bounds, is_risky, problem_in_time
from minimsg.constrain.schema import Spacing, Terms, made_ready
from minimsg.constrain.xml_values import Unwritable
from minimsg.errors import InvalidRequest
from minimsg.protocol.wire import JsonObject


class SchemaCheck:
    """Asks the engine in `threads`, or in a process where that may take for ever."""

    def __init__(self, compiler: Compiler, threads: Executor) -> None:
        self._compiler = compiler
        self._threads = threads

    async def input_schema(
        self, body: Body, tool: str, schema: JsonObject, path: str | None, *, is_held: bool
    ) -> JsonObject | None:
        """The reading of the schema of `tool`, as calls with `body` can be held to it.

        `path`: the schema's JSON path, if the tool is strict. Raises InvalidRequest.
        """

        def rules(ready: JsonObject) -> str:
            return "start: call\n" + body.rules("call", tool, ready, is_held=is_held)

        spacing = Spacing.SOME if is_held else Spacing.ONE
        terms = Terms(is_lenient=path is None, spacing=spacing)
        try:
            return await self._reading(schema, rules, path, terms)
        except Unwritable as problem:
            why = f"this model's form of calls cannot be held to it: {problem}"
            raise InvalidRequest(path or "", why) from problem

    async def value_schema(self, schema: JsonObject, path: str) -> JsonObject:
        """The reading of the schema of a whole reply, at `path`. Raises InvalidRequest."""

        def rules(ready: JsonObject) -> str:
            return f"start: {lark.schema(ready)}\n"

        reading = await self._reading(schema, rules, path, Terms())
        assert reading is not None
        return reading

    async def _reading(
        self,
        schema: JsonObject,
        rules: Callable[[JsonObject], str],
        path: str | None,
        terms: Terms,
    ) -> JsonObject | None:
        if path is not None and has_long_bounds(schema):
            raise refusal(path, schema, "too long: strings that have bounds")
        problem = ""
        for is_closed in (True, False):
            try:
                ready = made_ready(schema, replace(terms, is_closed=is_closed))
            except Unsatisfiable as error:
                problem = str(error)
                continue
            problem = await self._problem(lark.grammar(rules(ready)), is_risky(schema))
            if not problem:
                return ready
        if path is None:
            return None
        raise refusal(path, schema, problem)

    async def _problem(self, text: str, risky: bool) -> str:
        """Why the engine does not take the grammar `text`; "" if it does."""
        known = self._compiler.verdict(text)
        if known is not None:
            return known
        if risky:
            try:
                problem = await problem_in_time(text)
            except TimeoutError:  # which says as much of the machine: not to be remembered
                return TOO_LONG
            if problem:
                self._compiler.refuse(text, problem)
                return problem
        loop = get_running_loop()
        return await loop.run_in_executor(self._threads, self._compiler.problem, text)
