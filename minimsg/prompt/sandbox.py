"""The environment that chat templates run in: Jinja's sandbox, with meters on every operation.

Offers what templates expect of `transformers`: the globals `raise_exception` and
`strftime_now`, a `tojson` that leaves `<` and non-ASCII alone, loop controls, and
`{% generation %}`, which marks text for training and means nothing here. Calls, filters,
operators and printed values are paid for here; loops, `~`, slices and literals are made
to call the meters by `rewrite.py`. The budget of a rendering travels in its context, so
that one compiled template can be rendered by several threads at once.

Knows no messages and no tokens. Sources: Jinja 3.1 sandbox; `chat_template_utils.py` of
transformers for names and defaults.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Final

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from minimsg.prompt.budget import Budget, weigh
from minimsg.prompt.growth import (
    UNSAFE_FILTERS,
    UNSAFE_METHODS,
    filter_growth,
    method_growth,
    operator_growth,
)

# Names with a blank cannot be written in a template, so a template can neither see nor
# replace what stands under them.
BUDGET: Final = "the budget"
ADMIT: Final = "the result"
STEP: Final = "the next step"
CONCATENATE: Final = "the parts"


class Refusal(jinja2.TemplateError):
    """The template itself called `raise_exception`."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Where a template is compiled and run."""

    intercepted_binops = frozenset({"+", "*", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", GenerationTag],
            finalize=jinja2.pass_context(_weighed),
        )
        self.globals = {
            "dict": dict,
            "namespace": _namespace,
            "raise_exception": _raise_exception,
            "range": self.globals["range"],
            "strftime_now": _strftime_now,
        }
        self.filters["tojson"] = _tojson
        for name in UNSAFE_FILTERS:
            del self.filters[name]
        self.filters = {name: _metered(name, f) for name, f in self.filters.items()}
        self.filters |= {ADMIT: _admit, CONCATENATE: _concatenate}
        self.tests[STEP] = _step

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if attr in UNSAFE_METHODS or isinstance(obj, (int, float, bytes)):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = _budget(__context)
        if isinstance(__obj, (Macro, BlockReference, LoopContext)):
            budget.step()
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str):
            args = (list(args[0]), *args[1:]) if name == "join" and args else args
            budget.foresee(method_growth(owner, name, args, kwargs))
        return budget.admit(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = _budget(context)
        budget.foresee(operator_growth(operator, left, right))
        return budget.admit(super().call_binop(context, operator, left, right))


class GenerationTag(Extension):
    """`{% generation %}...{% endgeneration %}` stands for what is between."""

    tags = {"generation"}  # noqa: RUF012 (as Jinja declares it)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def _budget(context: Context) -> Budget:
    budget = context.resolve(BUDGET)
    assert isinstance(budget, Budget)
    return budget


@jinja2.pass_context
def _admit(context: Context, value: Any) -> Any:
    return _budget(context).admit(value)


@jinja2.pass_context
def _step(context: Context, _: object) -> bool:
    _budget(context).step()
    return True


@jinja2.pass_context
def _concatenate(context: Context, values: list[Any]) -> Any:
    budget = _budget(context)
    budget.foresee(weigh(values))
    return budget.admit("".join(map(str, values)))


def _weighed(context: Context, value: Any) -> Any:
    """A printed value; a list would be written out by Jinja without asking."""
    if isinstance(value, (list, tuple, dict)):
        _budget(context).foresee(weigh(value))
    return value


def _metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that asks and pays, whatever kind of filter it is."""
    kind = getattr(getattr(function, "jinja_pass_arg", None), "name", None)

    @jinja2.pass_context
    @wraps(function, updated=())
    def metered(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = _budget(context)
        if name == "join":
            value = list(value)
        budget.foresee(filter_growth(name, value, args, kwargs))
        return budget.admit(function(*_wanted(kind, context), value, *args, **kwargs))

    return metered


def _wanted(kind: str | None, context: Context) -> tuple[object, ...]:
    """What Jinja passes to a filter before the value."""
    passed = {
        "context": context,
        "eval_context": context.eval_ctx,
        "environment": context.environment,
    }
    return (passed[kind],) if kind else ()


def _namespace(**attributes: Any) -> Namespace:
    return Namespace(attributes)


def _raise_exception(message: object) -> None:
    raise Refusal(str(message))


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(str(format)[:1_000])


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
