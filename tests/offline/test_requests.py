"""Which lines are requests, what is said of those that are not, and how files are shared out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minimsg.errors import ConfigError
from minimsg.limits import LIMITS
from minimsg.offline.requests import WHOLE, RequestsFile, Shard

from .files import request, write

A, B = json.dumps(request("a")).encode(), json.dumps(request("b")).encode()


def ids(data: bytes, folder: Path, shard: Shard = WHOLE) -> set[str]:
    """The ids of a file of `data`, whose lines may be wrong."""
    file = folder / "requests.jsonl"
    file.write_bytes(data)
    return RequestsFile(file).scan(shard, forgives=True).ids


@pytest.mark.parametrize(
    "data",
    [
        A + b"\n" + B + b"\n",
        A + b"\n" + B,
        b"\xef\xbb\xbf" + A + b"\r\n\r\n \t\n" + B + b"\r\n\r\n",
        A + b"\n" + B.replace(b'"params"', b'"par\\u0061ms"'),
        A + b"\n" + b'{"custom_id":"b","params":{"max_tokens":NaN}}',
        A + b"\n" + b'{"custom_id":"b","params":{"max_tok',
        A + b"\n" + b'{"custom_id":"b","params":{"\xff":1}}',
        A + b"\n" + b'{"custom_id":"b","params":"none"}',
        A + b"\n" + b'{"custom_id":"b"}',
        A + b"\n" + b'{"custom_id":"b","params":{}} and more',
        A + b"\n" + B.replace(b"go", b"g\x00o"),
    ],
)
def test_a_line_with_an_id_is_a_request_however_it_ends(data: bytes, tmp_path: Path) -> None:
    assert ids(data, tmp_path) == {"a", "b"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "there is no request in it"),
        (b"\n \r\n", "there is no request in it"),
        (A + b"\nnonsense\n" + B, ":2: Input should be a valid dictionary"),
        (A + b"\n\x00\n", ":2: "),
        (A + b'\n{"custom_id": "b', ":2: The request body is not valid JSON"),
        (A + b"\n" + B.replace(b'"b"', b'"b c"'), ":2: custom_id: String should match pattern"),
        (A + b"\n" + B.replace(b'"b"', b"7"), ":2: custom_id: Input should be a valid string"),
        (A + b'\n{"params": {}}', ":2: custom_id: Field required"),
        (A + b"\n\n" + B + b"\n" + A, ":4: custom_id 'a' is that of line 1, too"),
        (b'{"custom_id":"a","method":"POST","body":{}}', ":1: params: Field required"),
        (b"\n".join([b"x"] * 25), "and 15 more"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_line(
    data: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        ids(data, tmp_path)
    assert said in str(refused.value)
    assert '{"custom_id": "...", "params": {...}}' in str(refused.value)


def test_for_a_server_a_wrong_line_is_refused_also_with_an_id(tmp_path: Path) -> None:
    file = write(tmp_path / "requests.jsonl", request("a"), {"custom_id": "b", "params": 1})
    assert RequestsFile(file).scan(forgives=True).ids == {"a", "b"}
    with pytest.raises(ConfigError, match=":2: params: Input should be a valid dictionary"):
        RequestsFile(file).scan()


def test_a_line_that_is_too_long_is_passed_over_and_the_next_is_read(tmp_path: Path) -> None:
    long = json.dumps(request("long", system="x" * LIMITS.body_bytes)).encode()
    assert ids(A + b"\n" + long + b"\n" + B, tmp_path) == {"a", "long", "b"}
    (_, line, _) = RequestsFile(tmp_path / "requests.jsonl").lines()
    assert "exceeds the maximum size" in str(line.fault)


def test_shards_have_each_request_once_whatever_lies_between(tmp_path: Path) -> None:
    lines = [json.dumps(request(f"r{number}")).encode() for number in range(11)]
    shards = [ids(b"\n\n".join(lines), tmp_path, Shard(number, 3)) for number in (1, 2, 3)]
    assert [sorted(shard, key=lambda id: int(id[1:])) for shard in shards] == [
        ["r0", "r3", "r6", "r9"],
        ["r1", "r4", "r7", "r10"],
        ["r2", "r5", "r8"],
    ]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/5", ""])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--shard"):
        Shard.parse(text)


def test_a_file_that_changes_between_two_readings_is_noticed(tmp_path: Path) -> None:
    file = RequestsFile(write(tmp_path / "requests.jsonl", request("a"), request("b")))
    found = file.scan()
    write(file.path, request("a"))
    with pytest.raises(ConfigError, match="has changed while it was read"):
        list(file.lines_of(found.ids))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, why in ((tmp_path, "must be a file"), (tmp_path / "none", "no such file")):
        with pytest.raises(ConfigError, match=why):
            RequestsFile(path)
