"""How long the result of an operation can become, told before it is made.

One row for each operation of Jinja or of Python's `str` that can make much of little:
`"a" * 50000000`, `replace("", x)`, `"%9999999d"`. An operation without a row makes no
more than a small multiple of what it is given. Knows nothing of budgets (`budget.py`)
or of the environment that asks (`sandbox.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import jinja2

from minimsg.prompt.budget import ELEMENT_CHARS, OverBudget, weigh

MAX_INT_BITS: Final = 100_000
MAX_JSON_INDENT: Final = 64
MAX_ROUND_DIGITS: Final = 300  # a float has no more

_NUMBER: Final = re.compile(r"\d+")
_HIDDEN_WIDTH: Final = re.compile(r"%[^a-zA-Z%]*\*|\{[^{}]*\{")  # %*d and {:{width}}

# Attributes that no chat template needs and whose results could not be told beforehand.
UNSAFE_METHODS: Final = frozenset({"encode", "expandtabs", "format_map", "maketrans", "translate"})

# Filters that are not repeatable, not linear in what they are given, or both.
UNSAFE_FILTERS: Final = ("pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr")


def operator_growth(operator: str, left: Any, right: Any) -> int:
    """Upper bound of the characters of `left operator right`."""
    if isinstance(left, int) and isinstance(right, int):
        return _int_growth(operator, left, right)
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        return len(left) + len(right)
    if operator == "*" and isinstance(left, int):
        left, right = right, left
    if operator == "*" and isinstance(right, int) and isinstance(left, (str, list, tuple)):
        return weigh(left) * right
    if operator == "%" and isinstance(left, str):
        return _format(left, right)
    return 0


def _int_growth(operator: str, left: int, right: int) -> int:
    bits = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * right}
    if bits.get(operator, 0) > MAX_INT_BITS:
        raise OverBudget(f"makes a number of more than {MAX_INT_BITS:,} bits")
    return 0


def filter_growth(name: str, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """Upper bound of the characters of `value | name(*args, **kwargs)`."""
    bound = FILTERS.get(name)
    return bound(value, *args, **kwargs) if bound else 0


def method_growth(owner: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """Upper bound of the characters of `owner.name(*args, **kwargs)`."""
    bound = METHODS.get(name)
    return bound(owner, *args, **kwargs) if bound else 0


def _width(value: Any, width: int = 80, *_: Any) -> int:
    return max(weigh(value), int(width))


def _replace(value: Any, old: Any, new: Any, *_: Any, **__: Any) -> int:
    if not isinstance(value, str):
        return weigh([value, new])
    return len(value) + value.count(str(old)) * len(str(new))


def _joined(value: Any, separator: Any = "", *_: Any, **__: Any) -> int:
    return weigh(value) + (len(value) * len(str(separator)) if isinstance(value, list) else 0)


def _method_join(separator: str, items: Any) -> int:
    return _joined(items, separator)


def _split(text: str, separator: str | None = None, *_: Any, **__: Any) -> int:
    pieces = len(text) // 2 if separator is None else text.count(separator)
    return len(text) + (pieces + 1) * ELEMENT_CHARS


def _format(text: str, *args: Any, **kwargs: Any) -> int:
    if _HIDDEN_WIDTH.search(text):
        raise OverBudget("takes the width of a format from its arguments")
    widths = sum(int(number[:20]) for number in _NUMBER.findall(text))
    return len(text) * (1 + weigh([*args, *kwargs.values()])) + widths


def _indent(value: Any, width: int | str = 4, *_: Any, **__: Any) -> int:
    lines = value.count("\n") + 1 if isinstance(value, str) else 1
    return weigh(value) + lines * (len(width) if isinstance(width, str) else width)


def _rows(value: Any, count: int, *_: Any, **__: Any) -> int:
    return (count + _elements(value)) * ELEMENT_CHARS


def _listed(value: Any, *_: Any, **__: Any) -> int:
    return _elements(value) * ELEMENT_CHARS


def _elements(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _tojson(value: Any, *_: Any, indent: Any = None, separators: Any = None, **__: Any) -> int:
    widest = max(weigh(indent) if isinstance(indent, str) else indent or 0, weigh(separators))
    if widest > MAX_JSON_INDENT:
        raise OverBudget(f"indents JSON by more than {MAX_JSON_INDENT}")
    return weigh(value)


def _round(value: Any, precision: int = 0, *_: Any, **__: Any) -> int:
    if abs(precision) > MAX_ROUND_DIGITS:
        raise OverBudget(f"rounds to more than {MAX_ROUND_DIGITS} digits")
    return 0


def _sum(value: Any, attribute: Any = None, start: Any = 0) -> int:
    if not isinstance(start, (int, float)):
        raise jinja2.TemplateRuntimeError("sum adds numbers only")
    return 0


def _times(factor: int) -> Callable[..., int]:
    return lambda value, *_, **__: weigh(value) * factor


METHODS: Final[Mapping[str, Callable[..., int]]] = {
    "center": _width,
    "format": _format,
    "join": _method_join,
    "ljust": _width,
    "replace": _replace,
    "rjust": _width,
    "rsplit": _split,
    "split": _split,
    "splitlines": lambda text, *_: _split(text),
    "zfill": _width,
}

FILTERS: Final[Mapping[str, Callable[..., int]]] = {
    "batch": _rows,
    "capitalize": _times(3),  # one letter may have a capital of three
    "center": _width,
    "e": _times(6),  # & and the quotes become five characters
    "escape": _times(6),
    "forceescape": _times(6),
    "format": _format,
    "indent": _indent,
    "join": _joined,
    "list": _listed,
    "lower": _times(3),
    "replace": _replace,
    "round": _round,
    "safe": _times(1),
    "slice": _rows,
    "sort": _listed,
    "string": _times(1),
    "sum": _sum,
    "title": _times(3),
    "tojson": _tojson,
    "trim": _times(1),
    "truncate": _times(1),
    "unique": _listed,
    "upper": _times(3),
    "urlencode": _times(12),  # one character, four bytes, each as %XX
    "wordcount": _times(1),
}
