"""Bodies that are no JSON, or JSON that parsers read in different ways, beside a running stream."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minimsg.config import ServerConfig
from minimsg.errors import InvalidRequest
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.validation import parse_json

from .conftest import Start
from .running import PLAIN, TAPES, Running, ask
from .test_body import JSON, send

STRICT = Dialect(profile="strict")


def body(**literals: str) -> bytes:
    """A sound request, with these fields as the JSON texts that are given."""
    sound = json.dumps(ask(PLAIN, max_tokens=5))
    fields = "".join(f', "{name}": {literal}' for name, literal in literals.items())
    return f"{sound[:-1]}{fields}}}".encode()


def history(arguments: str) -> bytes:
    """A request whose model called a tool before, with these arguments."""
    call = f'{{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {arguments}}}'
    result = '{"type": "tool_result", "tool_use_id": "toolu_1"}'
    return body(
        messages=f"""[{{"role": "user", "content": "go"}},
        {{"role": "assistant", "content": [{call}]}}, {{"role": "user", "content": [{result}]}}]"""
    )


NOT_FINITE = "Input should be a finite number"
NOT_JSON = "The request body is not valid JSON: "
REFUSED: dict[str, tuple[bytes, str]] = {
    "NaN": (body(temperature="NaN"), f"temperature: {NOT_FINITE}"),
    "minus infinity": (body(top_p="-Infinity"), f"top_p: {NOT_FINITE}"),
    "a float beyond all floats": (body(temperature="1e400"), f"temperature: {NOT_FINITE}"),
    "its 300 digits and an exponent": (body(temperature="9" * 300 + "E99"), "temperature: "),
    "NaN in a tool's input": (
        history('{"x": [1, NaN]}'),
        f"messages.1.content.0.input.x.1: {NOT_FINITE}",
    ),
    "1e999 in a tool's input": (
        history('{"x": -1e999}'),
        f"messages.1.content.0.input.x: {NOT_FINITE}",
    ),
    "a huge integer": (body(max_tokens="9" * 26), "max_tokens: "),
    "a huge negative integer": (body(max_tokens="-" + "9" * 26), "max_tokens: "),
    "5,000 digits": (body(max_tokens="9" * 5_000), NOT_JSON),
    "5,000 digits in a tool's input": (history('{"x": ' + "9" * 5_000 + "}"), NOT_JSON),
    "5,000 brackets": (history('{"x": ' + "[" * 5_000 + "]" * 5_000 + "}"), NOT_JSON),
    "a million braces": (b'{"a":' * 1_000_000, NOT_JSON),
    "a lone surrogate": (body(system='"\\ud800"'), NOT_JSON),
    "surrogates in the wrong order": (body(system='"\\ude00\\ud83d"'), NOT_JSON),
    "half a surrogate as a key": (body(metadata='{"\\udc00": 1}'), NOT_JSON),
    "a surrogate in UTF-8": (body(system='"@"').replace(b"@", b"\xed\xa0\x80"), NOT_JSON),
    "no UTF-8": (body(system='"@"').replace(b"@", b"\xff"), NOT_JSON),
    "a byte order mark": (b"\xef\xbb\xbf" + body(), NOT_JSON),
    "UTF-16": (body().decode().encode("utf-16-le"), NOT_JSON),
    "UTF-16 with its mark": (body().decode().encode("utf-16"), NOT_JSON),
    "UTF-32": (body().decode().encode("utf-32"), NOT_JSON),
    "a line break in a string": (body(system='"a\nb"'), NOT_JSON),
    "a comma too many": (body()[:-1] + b",}", NOT_JSON),
    "a comment": (body()[:-1] + b"/* */}", NOT_JSON),
    "single quotes": (body().replace(b'"', b"'"), NOT_JSON),
    "two objects": (body() * 2, NOT_JSON),
    "a list": (b"[" + body() + b"]", NOT_JSON),
    "a string": (b'"secret"', NOT_JSON),
    "null": (b"null", NOT_JSON),
    "nothing": (b"", NOT_JSON),
    "spaces": (b" \n", NOT_JSON),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_not_quite_json_is_refused_while_a_stream_goes_on(
    watched: Running, name: str
) -> None:
    data, message = REFUSED[name]
    status, answer = await send(watched, data)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["message"].startswith(message)
    assert len(answer["error"]["message"]) < 1_100


@pytest.mark.parametrize("name", ["5,000 brackets", "5,000 digits", "a million braces"])
def test_depth_and_digits_are_refused_in_an_instant(name: str) -> None:
    def attempt() -> float:
        started = time.perf_counter()
        with pytest.raises(InvalidRequest):
            parse_json(REFUSED[name][0], STRICT)
        return time.perf_counter() - started

    assert min(attempt() for _ in range(5)) < 0.05


async def test_a_string_of_31_megabytes_is_too_long_a_prompt(watched: Running) -> None:
    content = json.dumps([{"role": "user", "content": "a" * 31_000_000}])
    status, answer = await send(watched, body(messages=content))
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["message"].startswith("prompt is too long: ")


async def test_a_zero_character_in_a_text_is_a_character_like_others(watched: Running) -> None:
    counts = []
    for character in ("\0", "x"):
        turns = [{"role": "user", "content": f"a{character}b"}]
        counted, _ = await watched.post(
            {"model": "scripted", "messages": turns}, "/v1/messages/count_tokens"
        )
        counts.append(counted["input_tokens"])
    assert counts[0] == counts[1]


async def test_a_control_character_in_the_name_of_a_model_is_refused(watched: Running) -> None:
    for escape in ("\\u0000", "\\r\\n", "\\u001b"):
        status, answer = await send(watched, body(model=f'"scripted{escape}"'))
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        assert answer["error"]["message"].startswith("model: ")


async def test_of_two_models_the_last_is_asked_by_all(watched: Running) -> None:
    status, answer = await send(watched, b'{"model": "other", ' + body()[1:])
    assert (status, answer["model"]) == (200, "scripted")
    assert answer["content"] == [{"type": "text", "text": TAPES[PLAIN][:5]}]
    status, answer = await send(watched, body(model='"other"'))
    assert (status, answer["error"]["message"]) == (404, "model: other")


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (body(model='"scripted"'), "model"),
        (b'{"m\\u006fdel": "scripted", ' + body()[1:], "model"),
        (history('{"x": [{"secret": 1, "other": 2, "secret": 1}]}'), "secret"),
    ],
    ids=["at the top", "written in two ways", "inside"],
)
async def test_strict_refuses_equal_keys(start: Start, data: bytes, key: str) -> None:
    running = await start(config=ServerConfig(profile="strict"))
    headers = JSON | {"anthropic-version": "2023-06-01"}
    status, answer = await send(running, data, headers)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["message"].endswith(
        f"the key {key!r} appears more than once in an object"
    )
    status, _ = await send(running, body(), headers)
    assert status == 200


FEW = settings(max_examples=50)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@FEW
@given(st.dictionaries(st.text(), VALUES), st.booleans())
def test_all_other_json_reads_as_pythons_own_parser_reads_it(
    data: dict[str, object], is_ascii: bool
) -> None:
    written = json.dumps(data, ensure_ascii=is_ascii).encode()
    for dialect in (Dialect(), STRICT):
        assert parse_json(written, dialect) == json.loads(written) == data


@FEW
@given(st.dictionaries(st.text(), VALUES, min_size=1), st.data())
def test_any_key_that_comes_twice_is_found(data: dict[str, object], chosen: st.DataObject) -> None:
    key = chosen.draw(st.sampled_from(sorted(data)))
    written = json.dumps(data)[:-1] + f", {json.dumps(key, ensure_ascii=False)}: null}}"
    for whole in (written, f'{{"a": [{{"b": {written}}}]}}'):
        with pytest.raises(InvalidRequest, match="appears more than once"):
            parse_json(whole.encode(), STRICT)
