"""The table of rules, asked over HTTP: status, type, words, code and request id of each refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minimsg.config import ServerConfig
from minimsg.protocol.dialect import NEW, OLD, Version
from minimsg.protocol.request import MessagesRequest

# Tests have no absolute name.
from ..protocol.rows.row import Json  # noqa: TID252
from ..protocol.test_rules_table import BASE, ROWS, answer, dialect  # noqa: TID252
from .conftest import Start


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_what_the_table_refuses_is_refused_over_http_in_the_same_words(
    start: Start, profile: str, version: Version
) -> None:
    running = await start("tiny", config=ServerConfig(profile=profile, any_model=True))
    num_refused = 0
    for row in (row for row in ROWS if not (row.without or row.drops or row.in_batch)):
        read_as = replace(
            dialect(row, profile=running.server.config.profile, version=version),  # type: ignore[arg-type]
            lacking=running.server.lacking,
        )
        body: Json = BASE | {"max_tokens": 8} | row.fields
        words, code = answer(MessagesRequest, body, read_as)
        if words == "OK":
            continue
        num_refused += 1
        headers = {"anthropic-version": version, "anthropic-beta": ",".join(row.betas)}
        async with running.session.post(
            running.url + "/v1/messages", json=body, headers=headers
        ) as response:
            said = await response.json()
            if row.meaning == "a document that was uploaded":  # the server knows of files
                assert response.status == 404, said
                continue
            assert response.status == 400, (row.meaning, said)
            assert said["error"]["type"] == "invalid_request_error"
            assert said["error"]["message"] == words, row.meaning
            assert (said["error"].get("details") or {}).get("error_code") == code
            assert said["request_id"] == response.headers["request-id"]
    assert num_refused > 150
