"""The types of a request against those of the official SDK: same fields, same values, same kinds.

Both are walked from the request down, side by side; an object is told by its `type`. What
the API reference has and the SDK has not is named in `OURS`, and the other way round in
`THEIRS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NotRequired, Required, get_args, get_origin

import pytest
from anthropic.types.beta import message_count_tokens_params, message_create_params
from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict

from minimsg.protocol.request import CountTokensRequest, InputMessage, MessagesRequest

OURS: Final = {
    "stream",  # which the SDK types apart
    "bill",  # extensions
    "chat_template_kwargs",
    "seed",
    "temperature",  # older version
    "top_p",
    "top_k",
    "output_format",  # older name, which the SDK translates
    "thread",  # known on both routes, to be refused
    "cache_control",  # known where it is refused, too
    "file_id",  # of replies, which come back
}
SYSTEM_ONLY: Final = {"clear_at", "output_config"}  # one class serves all roles
THEIRS: Final = {"betas", "user_profile_id", "workspace_id"}  # become headers


def sdk_fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def is_required(kind: Any, annotation: Any) -> bool:
    origin = get_origin(annotation)
    return origin is Required or (kind.__total__ and origin is not NotRequired)


def parts(annotation: Any) -> Iterator[Any]:
    """The objects that an annotation is made of, ours or theirs."""
    if is_typeddict(annotation) or (
        isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        yield annotation
    for inner in get_args(annotation):
        yield from parts(inner)


def values(annotation: Any) -> set[Any]:
    """The literals of an annotation."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return {value for inner in get_args(annotation) for value in values(inner)} - {None}


def our_fields(kind: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def tags(kind: Any) -> set[str]:
    """The values of `type` of an object; of one without, its only kind."""
    if is_typeddict(kind):
        return values(sdk_fields(kind).get("type")) or {""}
    fields = our_fields(kind)
    return values(fields["type"].annotation) if "type" in fields else {""}


def pairs(theirs: Any, ours: type[BaseModel]) -> Iterator[tuple[str, Any, Any]]:
    """Every place that both have, with an object of theirs and one of ours."""
    seen: set[tuple[Any, Any]] = set()
    waiting = [(ours.__name__, theirs, ours)]
    while waiting:
        path, sdk, own = waiting.pop()
        if (sdk, own) in seen:
            continue
        seen.add((sdk, own))
        yield path, sdk, own
        for name, annotation in sdk_fields(sdk).items():
            if name not in our_fields(own):
                continue
            here = f"{path}.{name}"
            own_parts = list(parts(our_fields(own)[name].annotation))
            for part in filter(is_typeddict, parts(annotation)):
                fits = [each for each in own_parts if tags(each) & tags(part)]
                waiting += [(f"{here}[{min(tags(part))}]", part, each) for each in fits]
                if own_parts and name != "definition":  # of a tool that nobody here can run
                    assert fits, f"{here} has nothing like {part.__name__}"


PAIRS: Final = [
    *pairs(message_create_params.MessageCreateParamsBase, MessagesRequest),
    *pairs(message_count_tokens_params.MessageCountTokensParams, CountTokensRequest),
]


def test_the_walk_reaches_every_kind() -> None:
    assert len(PAIRS) > 140
    kinds = {sdk.__name__ for _, sdk, _ in PAIRS}
    assert {"BetaToolParam", "BetaFallbackBlockParam", "BetaBrowserStateTabEntryParam"} <= kinds


@pytest.mark.parametrize(("path", "sdk", "own"), PAIRS, ids=[path for path, _, _ in PAIRS])
def test_objects_have_the_same_fields(path: str, sdk: Any, own: type[BaseModel]) -> None:
    theirs, ours = sdk_fields(sdk), our_fields(own)
    assert theirs.keys() - ours.keys() - THEIRS == set()
    known = OURS | (SYSTEM_ONLY if own is InputMessage else set())
    assert ours.keys() - theirs.keys() - known == set()


@pytest.mark.parametrize(("path", "sdk", "own"), PAIRS, ids=[path for path, _, _ in PAIRS])
def test_what_the_sdk_may_leave_out_is_not_required(
    path: str, sdk: Any, own: type[BaseModel]
) -> None:
    required = {name for name, field in our_fields(own).items() if field.is_required()}
    assert required - {n for n, kind in sdk_fields(sdk).items() if is_required(sdk, kind)} == set()


@pytest.mark.parametrize(("path", "sdk", "own"), PAIRS, ids=[path for path, _, _ in PAIRS])
def test_where_values_are_listed_the_lists_are_the_same(
    path: str, sdk: Any, own: type[BaseModel]
) -> None:
    for name, field in our_fields(own).items():
        ours, theirs = values(field.annotation), values(sdk_fields(sdk).get(name))
        if name in SYSTEM_ONLY and name not in sdk_fields(sdk):
            continue
        if ours and name not in ("type", "role") and not list(parts(field.annotation)):
            assert ours == theirs, name
