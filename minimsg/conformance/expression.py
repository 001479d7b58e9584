"""The little language of cases: what must hold between replies, and `${...}` in requests.

    reply.body.usage.output_tokens <= 8
    total(plain.body.usage) == count.body.input_tokens
    kinds(reply.body.content)[-1] == "tool_use"

Python's syntax for names, dots, indices, comparisons, `and`, `or`, `not`, `+`, `-`, lists,
texts and numbers, and calls of `functions.py`; nothing else. A dot is a key of a JSON
object or a property of a reply. What is not there is `missing`, equal to nothing but itself:
no case has to ask first. Knows no case; raises ConfigError for what is no expression.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from minimsg.conformance.difference import as_json, difference
from minimsg.conformance.functions import FUNCTIONS, MISSING
from minimsg.conformance.reply import Reply
from minimsg.errors import ConfigError

Names = Mapping[str, object]

COMPARE: Final[dict[type[ast.cmpop], Callable[..., bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
CONSTANTS: Final[dict[str, object]] = {
    "null": None,
    "true": True,
    "false": False,
    "missing": MISSING,
}
SHOWN_CHARS: Final = 300  # of a value in an explanation


def evaluate(text: str, names: Names) -> object:
    """The value of an expression. Raises ConfigError where it is none."""
    return _value(_parse(text), names)


def holds(text: str, names: Names) -> bool:
    """Whether an expression is true; a comparison of what cannot be compared is not."""
    return bool(evaluate(text, names))


def why_not(text: str, names: Names) -> str:
    """What was seen instead: the values on both sides, and where they differ first."""
    return "; ".join(dict.fromkeys(_seen(_parse(text), names)))


def _seen(node: ast.expr, names: Names) -> Iterator[str]:
    """The values that made `node` false, each as often as it stands there."""
    match node:
        case ast.BoolOp(ast.And(), values):
            wrong = [part for part in values if not _value(part, names)]
            for part in wrong[:1] or values:
                yield from _seen(part, names)
        case ast.BoolOp(ast.Or(), values):
            for part in values:
                yield from _seen(part, names)
        case ast.Compare():
            yield from _sides(node, names)
        case ast.UnaryOp(ast.Not(), operand):
            yield from _seen(operand, names)
        case ast.Call(_, args):
            for argument in args:
                yield from _named_value(argument, names)
        case _:
            yield from _named_value(node, names)


def _sides(node: ast.Compare, names: Names) -> Iterator[str]:
    for side in (node.left, *node.comparators):
        yield from _named_value(side, names)
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        left, right = _value(node.left, names), _value(node.comparators[0], names)
        if found := difference(left, right):
            yield found


def _named_value(node: ast.expr, names: Names) -> Iterator[str]:
    """`node` and what it is; nothing for what says its value itself."""
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    if used - CONSTANTS.keys():
        yield f"{ast.unparse(node)} is {show(_value(node, names))}"


def show(value: object) -> str:
    """A value as JSON, cut where it is long."""
    text = "missing" if value is MISSING else as_json(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}... ({len(text)} characters)"


@cache
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ConfigError(f"{text!r} is no expression: {error.msg}") from error


def _value(node: ast.expr, names: Names) -> object:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(id):
            return CONSTANTS[id] if id in CONSTANTS else _named(id, names)
        case ast.Attribute(value, attr):
            return _part(_value(value, names), attr)
        case ast.Subscript(value, index):
            return _part(_value(value, names), _value(index, names))
        case ast.List(elts):
            return [_value(each, names) for each in elts]
        case ast.Call(ast.Name(id), args, []) if id in FUNCTIONS:
            return _call(id, [_value(each, names) for each in args])
        case _:
            return _operation(node, names)


def _operation(node: ast.expr, names: Names) -> object:
    match node:
        case ast.Compare():
            return _compare(node, names)
        case ast.BoolOp(ast.And(), values):
            return all(_value(each, names) for each in values)
        case ast.BoolOp(ast.Or(), values):
            return any(_value(each, names) for each in values)
        case ast.UnaryOp(ast.Not(), operand):
            return not _value(operand, names)
        case ast.UnaryOp(ast.USub(), operand):
            return _call("minus", [0, _value(operand, names)])
        case ast.BinOp(left, ast.Add(), right):
            return _call("plus", [_value(left, names), _value(right, names)])
        case ast.BinOp(left, ast.Sub(), right):
            return _call("minus", [_value(left, names), _value(right, names)])
    raise ConfigError(f"{ast.unparse(node)!r} is not in the language of cases")


def _compare(node: ast.Compare, names: Names) -> bool:
    left = _value(node.left, names)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator, names)
        try:
            if not COMPARE[type(op)](left, right):
                return False
        except TypeError:  # None < 1
            return False
        left = right
    return True


def _named(name: str, names: Names) -> object:
    if name not in names:
        raise ConfigError(f"no step and no value is called {name!r}")
    return names[name]


def _part(whole: object, key: object) -> object:
    """A key of an object, an item of a list, a property of a reply; else `missing`."""
    if isinstance(whole, Reply):
        return getattr(whole, str(key), MISSING)
    if isinstance(whole, Mapping):
        return whole.get(key, MISSING)
    if isinstance(whole, list | str) and isinstance(key, int) and -len(whole) <= key < len(whole):
        return whole[key]
    return MISSING


def _call(name: str, arguments: list[object]) -> object:
    """The function's value; `missing` for arguments that it is not made for."""
    try:
        return FUNCTIONS[name](*arguments)
    except (TypeError, ValueError, AttributeError):
        return MISSING
