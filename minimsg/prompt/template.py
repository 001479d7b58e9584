"""A model's chat template: messages in, the text that the model was trained to read out.

The template is compiled once, in a sandbox (`sandbox.py`), with budgets (`budget.py`).
`render` gives the text, byte for byte that of transformers' `apply_chat_template`;
`render_pieces` gives it cut at the control tokens that the template itself wrote
(`marks.py`), which is what a prompt is encoded from (`encode.py`). Knows nothing of
requests or ids. What a template can do is found out by `probe.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import jinja2

from minimsg.errors import TemplateError
from minimsg.limits import LIMITS, Limits
from minimsg.prompt.budget import Budget, weigh
from minimsg.prompt.marks import ImageTokens, Marks, Piece
from minimsg.prompt.rewrite import Marking, Metering, compositions
from minimsg.prompt.sandbox import BUDGET, Sandbox

MAX_SOURCE_CHARS: Final = 1 << 20  # published templates have up to 30,000

# What somebody else's program can raise inside Jinja, its own errors and Python's.
_FAILURES: Final = (
    jinja2.TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)

Message = Mapping[str, object]


class ChatTemplate:
    """A compiled chat template. Immutable, and safe to render from several threads."""

    def __init__(
        self,
        source: str,
        special_tokens: Mapping[str, str],
        controls: Collection[str] = (),
        limits: Limits = LIMITS,
        images: ImageTokens | None = None,
    ) -> None:
        """`special_tokens`: `bos_token` ... -> text, variables of the template.

        `controls`: every control string of the tokenizer, for `render_pieces`; `images`: those
        of an image, if the model reads some.
        Raises TemplateError if it does not compile.
        """
        self.source = source
        self._limits = limits
        self.marks = Marks(controls, images)
        self._plain = _compile(source, Marks(()))
        self._marked = _compile(source, self.marks)
        self._special_tokens = dict(special_tokens)
        self._marked_tokens = {name: self.marks.mark(text) for name, text in special_tokens.items()}

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool,
        **variables: object,
    ) -> str:
        """The text of a conversation. Raises TemplateError."""
        given = {"tools": tools, "add_generation_prompt": add_generation_prompt, **variables}
        return self._run(self._plain, messages, {**self._special_tokens, **given})

    def render_pieces(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool,
        **variables: object,
    ) -> list[Piece]:
        """The text cut at the template's own control tokens: plain, control, ..., plain.

        No value may hold a lone surrogate. Raises TemplateError.
        """
        return self.marks.split(
            self.render_marked(
                messages, tools=tools, add_generation_prompt=add_generation_prompt, **variables
            )
        )

    def render_marked(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool,
        **variables: object,
    ) -> str:
        """The text with a marker for each of the template's own control tokens.

        Values may hold source markers (`marks.py`). Raises TemplateError.
        """
        given = {"tools": tools, "add_generation_prompt": add_generation_prompt, **variables}
        return self._run(self._marked, messages, {**self._marked_tokens, **given})

    def _run(
        self,
        template: jinja2.Template,
        messages: Sequence[Message],
        variables: Mapping[str, object],
    ) -> str:
        filled = [
            {key: value for key, value in message.items() if value is not None}
            for message in messages
        ]
        values = {"documents": None, **variables, "messages": filled}
        budget = Budget(weigh(values), self._limits)
        written: list[str] = []
        with _failures_named("fails"):
            context = template.new_context({**values, BUDGET: budget})
            for text in template.root_render_func(context):
                budget.spend(len(text))
                written.append(text)
        return "".join(written)


def _compile(source: str, marks: Marks) -> jinja2.Template:
    if len(source) > MAX_SOURCE_CHARS:
        raise TemplateError(f"the template has {len(source):,} characters; at most 1 MiB is read")
    sandbox = Sandbox()
    sandbox.filters |= compositions(marks)
    with _failures_named("does not compile"):
        tree = Metering().visit(Marking(marks).visit(sandbox.parse(source)))
        return sandbox.from_string(tree.set_environment(sandbox))


@contextmanager
def _failures_named(what: str) -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise TemplateError(f"the template {what}: it calls itself without end") from error
    except _FAILURES as error:
        raise TemplateError(f"the template {what}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    kind = type(error).__name__
    line = f" (line {error.lineno})" if isinstance(error, jinja2.TemplateSyntaxError) else ""
    return f"{error}{line}" if isinstance(error, jinja2.TemplateError) else f"{kind}: {error}"
