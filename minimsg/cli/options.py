"""Command line flags, made from the settings of `config.py`.

A field with help text becomes `--its-name`, with its default shown and with the
environment name `MINIMSG_ITS_NAME`. Knows the types that settings have, not what any
of them means.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from dataclasses import Field, fields
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click

C = TypeVar("C")
R = TypeVar("R")

TYPES: dict[type, click.ParamType[Any]] = {
    str: click.STRING,
    bool: click.BOOL,
    Path: click.Path(path_type=Path),
    tuple: click.STRING,  # of several strings, a flag each
}


def options_from(
    config: type[C], only: Collection[str] | None = None
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command a flag for each field of the dataclass `config` that has help text.

    `only`: for these of them; the others keep their defaults.
    The command receives the built object under the class's name in lower case:
    `ServerConfig` arrives as `server_config`.
    """
    parameter = re.sub(r"(?<!^)(?=[A-Z])", "_", config.__name__).lower()
    documented = [
        field for field in documented_fields(config) if only is None or field.name in only
    ]

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(command)
        def call(**values: Any) -> R:
            taken = {field.name: values.pop(field.name) for field in documented}
            return command(**values, **{parameter: config(**taken)})

        flagged: Callable[..., R] = call
        for field in reversed(documented):
            flagged = _option(config, field)(flagged)
        return flagged

    return decorate


def documented_fields(config: type) -> list[Field[Any]]:
    """The fields that become flags."""
    return [field for field in fields(config) if field.metadata.get("help")]


def flag(field_name: str) -> str:
    """`max_context` -> `--max-context`."""
    return "--" + field_name.replace("_", "-")


def environment_name(field_name: str) -> str:
    """`max_context` -> `MINIMSG_MAX_CONTEXT`."""
    return "MINIMSG_" + field_name.upper()


def _option(config: type, field: Field[Any]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    value_type = _value_type(config, field.name)
    return click.option(
        flag(field.name),
        field.name,
        type=_parameter_type(field, value_type),
        is_flag=value_type is bool,
        multiple=value_type is tuple,
        default=field.default,
        help=field.metadata["help"],
        show_default=True,
        envvar=[environment_name(field.name), *field.metadata["environment"]],
        show_envvar=True,
    )


def _parameter_type(field: Field[Any], value_type: type) -> click.ParamType[Any]:
    """What refuses a value outside the field's choices or bounds, and names them."""
    if choices := field.metadata["choices"]:
        return click.Choice(choices)
    minimum, maximum = field.metadata["minimum"], field.metadata["maximum"]
    if value_type is int:
        return click.IntRange(minimum, maximum)
    return click.FloatRange(minimum, maximum) if value_type is float else TYPES[value_type]


def _value_type(config: type, field_name: str) -> type:
    """The field's type without `| None`."""
    annotation = get_type_hints(config)[field_name]
    if get_origin(annotation) is tuple:
        return tuple
    types = [t for t in get_args(annotation) if t is not NoneType] or [annotation]
    assert len(types) == 1, f"{field_name}: one type and None at most"
    found: type = types[0]
    return found
