"""The way from what a request asks of its reply to the hook that holds the reply to it.

    constraint.py                  what is asked, as plain data
    schema.py -> lark.py           a schema made ready; the pieces of grammars
    calls.py xml_calls.py          calls of tools in each format
    replies.py                     the grammars of a whole reply, or of a call in one
    checking.py compiler.py        compiled within bounds (risk.py), or refused (refusal.py)
    hooks.py lazy.py budget.py banned.py
                                   what the engine asks at each step

Compiling takes milliseconds to seconds and is done beside the event loop, never on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final, Self, TypeVar

from minimsg.constrain.banned import BannedTags
from minimsg.constrain.budget import BudgetHook
from minimsg.constrain.calls import FORMS
from minimsg.constrain.checking import SchemaCheck
from minimsg.constrain.compiler import TOO_COMPLEX, Compiler
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.hooks import GrammarHook, Restarting, Together
from minimsg.constrain.lazy import LazyGrammarHook
from minimsg.constrain.loops import Circles, patience
from minimsg.constrain.matcher import Matcher
from minimsg.constrain.reading import Reading
from minimsg.constrain.replies import ReplyForm, held_grammars, reply_grammars
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from minimsg.errors import InvalidRequest
from minimsg.parsing.calls import Tools
from minimsg.parsing.formats import PARSERS
from minimsg.parsing.thinking import THINK, ThinkingTags
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.wire import JsonObject

T = TypeVar("T")
NUM_THREADS: Final = 2
DEADLINE_S: Final = 20.0  # for all the schemas of a request together


class Grammars:
    """The grammars of one model, which writes calls in `format` (`parsing/formats.py`)."""

    def __init__(self, vocabulary: Vocabulary, format: str) -> None:
        self._vocabulary = vocabulary
        self._format = format
        self._form = FORMS.get(format)
        self._threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="grammar")
        self._compiler = Compiler(vocabulary)
        self._check = SchemaCheck(self._compiler, self._threads)

    @classmethod
    def of(cls, chat: ChatModel) -> Self:
        """Of a served model: its tokens, and the form in which its template writes calls."""
        tokens = Vocabulary(chat.tokenizer, end_ids=chat.end_ids, end_id=chat.turn_end_id)
        return cls(tokens, chat.tool_format)

    def close(self) -> None:
        """Compile no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def warm(self) -> None:
        """Make what the first request with tools would wait for: 0.5 s for 49k tokens."""
        if self._form is not None:
            texts = held_grammars("", None, self._form)
            await self._beside(partial(self._compiler.matcher, texts))

    async def hook(
        self,
        constraint: Constraint,
        tools: Tools,
        thinking: ThinkingTags | None = None,
        *,
        continues: bool = False,
    ) -> TokenHook | None:
        """What holds a reply to `constraint`; None if nothing need.

        `tools`, `thinking` and `continues` are those of the reply's parser and detokenizer.
        Raises InvalidRequest for what cannot be enforced.
        """
        reading = partial(
            Reading, self._vocabulary.tokenizer, self._format, tools, thinking, continues=continues
        )
        hooks: list[TokenHook] = []
        if constraint.thinking_budget is not None:
            closing = self._vocabulary.tag((thinking or THINK).closing)
            budget = constraint.thinking_budget
            hooks.append(Restarting(lambda: BudgetHook(reading(), closing, budget)))
        try:
            async with asyncio.timeout(DEADLINE_S):
                hooks += await self._grammar_hooks(constraint, tools, thinking, reading)
        except TimeoutError:
            if constraint.is_strict:
                raise InvalidRequest("", TOO_COMPLEX) from None
            hooks += await self._grammar_hooks(constraint, _open(tools), thinking, reading)
        return Together(hooks) if len(hooks) > 1 else next(iter(hooks), None)

    async def _grammar_hooks(
        self,
        constraint: Constraint,
        tools: Tools,
        thinking: ThinkingTags | None,
        reading: Callable[[], Reading],
    ) -> list[TokenHook]:
        if self._form is None:
            self._refuse_calls(constraint)
        if constraint.must_call or constraint.schema is not None:
            return [await self._whole_reply(constraint, tools, thinking)]
        if tools and self._form:
            return [await self._calls(constraint, tools, reading)]
        if constraint.forbids_calls:
            return [BannedTags(PARSERS[self._format].openings, self._vocabulary)]
        return []

    def _refuse_calls(self, constraint: Constraint) -> None:
        """Raise InvalidRequest for what a model without a known form of calls cannot do."""
        if constraint.must_call:
            why = 'type "tool" and "any" are not supported for this model.'
            raise InvalidRequest("tool_choice", why)
        for path in constraint.strict.values():
            raise InvalidRequest(path, "strict tools are not supported for this model")

    async def _whole_reply(
        self, constraint: Constraint, tools: Tools, thinking: ThinkingTags | None
    ) -> TokenHook:
        """A reply that is calls, or one JSON value (or calls, if it may have either)."""
        names = constraint.must_call or list(tools if self._form else ())
        value = None
        if constraint.schema is not None and not constraint.must_call:
            value = await self._check.value_schema(constraint.schema, constraint.schema_path)
        schemas = {
            name: await self._input_schema(name, constraint, tools, is_held=False) for name in names
        }
        reply = ReplyForm(schemas, value, constraint.is_one_call, thinking)
        matcher = await self._beside(partial(self._matcher, reply, constraint))
        is_json = self._form is None or self._form.body.is_json
        circles = None
        if is_json and thinking is None and constraint.max_tokens:
            circles = Circles(self._vocabulary, patience(constraint.max_tokens))
        return GrammarHook(matcher, self._vocabulary, circles)

    def _matcher(self, reply: ReplyForm, constraint: Constraint) -> Matcher:
        """The grammars of a reply; where they are too much together, of what was promised."""
        strict = {name: schema if name in constraint.strict else None
            for name, schema in reply.tools.items()}  # fmt: skip
        is_strict = constraint.is_strict
        texts = reply_grammars(reply, self._form, self._vocabulary)
        try:
            return self._compiler.matcher(texts, is_strict=is_strict)
        except InvalidRequest:
            texts = reply_grammars(replace(reply, tools=strict), self._form, self._vocabulary)
            return self._compiler.matcher(texts, is_strict=is_strict)

    async def _calls(
        self, constraint: Constraint, tools: Tools, reading: Callable[[], Reading]
    ) -> TokenHook:
        """A reply that may have calls, each of which is held once it has begun."""
        assert self._form is not None
        matchers = {}
        for name in tools:
            schema = None
            if name in constraint.strict:
                schema = await self._input_schema(name, constraint, tools, is_held=True)
            texts = held_grammars(name, schema, self._form)
            matchers[name] = await self._beside(partial(self._compiler.matcher, texts))
        hold = partial(
            LazyGrammarHook,
            matchers=matchers,
            body=self._form.body,
            vocabulary=self._vocabulary,
            strict=constraint.strict,
            is_one_call=constraint.is_one_call,
        )
        return Restarting(lambda: hold(reading()))

    async def _input_schema(
        self, name: str, constraint: Constraint, tools: Tools, *, is_held: bool
    ) -> JsonObject | None:
        """What the input of a tool is held to: any object, unless strict or forced."""
        assert self._form is not None
        path = constraint.strict.get(name)
        if path is None and name not in constraint.must_call:
            return None
        schema = dict(tools[name].input_schema)
        body = self._form.body
        return await self._check.input_schema(body, name, schema, path, is_held=is_held)

    async def _beside(self, work: Callable[[], T]) -> T:
        """`work()`, not on the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _open(tools: Tools) -> Tools:
    """`tools`, each of which takes any object."""
    return {name: replace(tool, input_schema={"type": "object"}) for name, tool in tools.items()}
