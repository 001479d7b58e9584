"""Every rule of a request's body, in both profiles and both API versions: one table.

The rows are in `rows/`, by subject; the oracle is the Messages API reference and, where
a client reads the words, what that client looks for.
"""

from __future__ import annotations

import traceback
from typing import Final

import pytest

from minimsg.errors import InvalidRequest
from minimsg.protocol.dialect import NEW, OLD, Dialect, Profile, Version
from minimsg.protocol.gates import FIELDS, KINDS
from minimsg.protocol.request import CountTokensRequest, MessagesRequest, PromptRequest
from minimsg.protocol.rules import PROMPT_RULES, REPLY_RULES, unheeded
from minimsg.protocol.validation import validate

from .rows import (
    blocks,
    caching,
    context,
    documents,
    gates,
    output,
    pairs,
    reply,
    schemas,
    server_pairs,
    services,
    sources,
    system_turns,
    thinking,
    tool_changes,
    tool_choice,
    tools,
    turns,
    types,
)
from .rows.row import HI, OK, Json, Row

SUBJECTS: Final[list[tuple[Row, ...]]] = [
    types.ROWS,
    turns.ROWS,
    system_turns.ROWS,
    blocks.ROWS,
    documents.ROWS,
    sources.ROWS,
    pairs.ROWS,
    server_pairs.ROWS,
    tools.ROWS,
    schemas.ROWS,
    tool_choice.ROWS,
    tool_changes.ROWS,
    caching.ROWS,
    thinking.ROWS,
    output.ROWS,
    context.ROWS,
    services.ROWS,
    gates.ROWS,
    reply.ROWS,
]
ROWS: Final = [row for rows in SUBJECTS for row in rows]
DIALECTS: Final[list[tuple[Profile, Version]]] = [
    ("compat", OLD),
    ("compat", NEW),
    ("strict", OLD),
    ("strict", NEW),
]
BASE: Final[Json] = {"model": "m", "messages": [HI]}


def dialect(row: Row, profile: Profile = "compat", version: Version = OLD) -> Dialect:
    return Dialect(
        profile,
        version,
        frozenset(row.betas),
        lacking=frozenset(row.lacking),
        without=frozenset(row.without),
        drops_server_tools=row.drops,
        is_in_batch=row.in_batch,
    )


def answer(kind: type[PromptRequest], body: Json, dialect: Dialect) -> tuple[str, str | None]:
    """What `body` is answered with: OK or the message of a 400, and its error_code."""
    try:
        validate(kind, body, dialect).request.check(dialect)
    except InvalidRequest as error:
        return error.message, error.error_code
    return OK, None


def breaker(row: Row, profile: Profile, version: Version) -> str:
    """The name of the rule that refuses `row`, if one does."""
    way = dialect(row, profile, version)
    try:
        validate(MessagesRequest, {**BASE, "max_tokens": 8, **row.fields}, way).request.check(way)
    except InvalidRequest as error:
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        return next((name for name in frames if name in RULES), "")
    return ""


RULES: Final = {rule.__name__ for rule in (*PROMPT_RULES, *REPLY_RULES)}


def test_every_rule_has_a_row_that_breaks_it() -> None:
    assert {breaker(row, *way) for row in ROWS for way in DIALECTS} >= RULES


def test_every_gate_has_a_row_that_finds_it_closed() -> None:
    verdicts = {row.verdict(*way) for row in ROWS for way in DIALECTS}
    for field in FIELDS.keys() - {"bill"}:  # of count_tokens alone
        step = field.replace("messages.*", "messages.1").replace("<type>", "enabled")
        assert f"{step}: Extra inputs are not permitted" in verdicts
    refused = {verdict.split("'")[1] for verdict in verdicts if ": Input tag '" in verdict}
    assert refused >= {kind for _, kinds in KINDS.values() for kind in kinds}


def test_the_table_is_long_and_no_row_is_there_twice() -> None:
    assert len(ROWS) > 300
    assert len({(row.meaning, repr(row.fields)) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("profile", "version"), DIALECTS)
@pytest.mark.parametrize("row", ROWS, ids=[row.meaning for row in ROWS])
def test_a_request_is_answered_as_its_row_says(
    row: Row, profile: Profile, version: Version
) -> None:
    body = {**BASE, "max_tokens": 8, **row.fields}
    message, error_code = answer(MessagesRequest, body, dialect(row, profile, version))
    assert message == row.verdict(profile, version)
    assert error_code == (row.error_code if message != OK else None)


COUNTED: Final = [
    row for row in ROWS if row.fields.keys() <= CountTokensRequest.model_fields.keys()
]


@pytest.mark.parametrize("row", COUNTED, ids=[row.meaning for row in COUNTED])
def test_count_tokens_refuses_what_create_refuses(row: Row) -> None:
    verdict = row.count or row.verdict("compat", OLD)
    assert answer(CountTokensRequest, {**BASE, **row.fields}, dialect(row))[0] == verdict


@pytest.mark.parametrize("row", ROWS, ids=[row.meaning for row in ROWS])
def test_what_is_asked_for_in_vain_is_told_in_compat(row: Row) -> None:
    if row.verdict("compat", OLD) != OK:
        return
    request = validate(MessagesRequest, {**BASE, **row.fields}, dialect(row)).request
    assert tuple(unheeded(request, dialect(row))) == row.unheeded


@pytest.mark.parametrize(("name", "fields", "is_taken"), reply.COUNTED)
def test_count_tokens_takes_what_decides_the_prompt(
    name: str, fields: Json, is_taken: bool
) -> None:
    body = {**BASE, **fields}
    verdict = OK if is_taken else f"{name}: Extra inputs are not permitted"
    for version in (OLD, NEW):
        assert answer(CountTokensRequest, body, Dialect("strict", version))[0] == verdict
    assert validate(CountTokensRequest, body, Dialect()).ignored == ([] if is_taken else [name])


@pytest.mark.parametrize("name", ["model", "messages"])
def test_what_every_request_needs(name: str) -> None:
    body = {key: value for key, value in {**BASE, "max_tokens": 8}.items() if key != name}
    for profile, version in DIALECTS:
        said = answer(MessagesRequest, body, Dialect(profile, version))[0]
        assert said == f"{name}: Field required"


def test_a_length_is_required_as_hosted_and_has_a_default_here() -> None:
    assert answer(MessagesRequest, BASE, Dialect())[0] == OK
    assert answer(MessagesRequest, BASE, Dialect("strict"))[0] == "max_tokens: Field required"
    assert answer(CountTokensRequest, BASE, Dialect("strict"))[0] == OK
