"""A file of results is whole at any time, and is gone on with only by what it was begun from."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minimsg.errors import ConfigError, DiskFailed
from minimsg.offline import results as module
from minimsg.offline.results import Origin, ResultsFile

from .files import results, write

ORIGIN = Origin("0" * 64, "tiny")
BODY = b'{"type":"succeeded","message":{}}'
LINE = b'{"custom_id":"a","result":{"type":"succeeded","message":{}}}\n'


@contextmanager
def opened(
    path: Path, ids: str = "abc", origin: Origin = ORIGIN, *, keeps: bool = False
) -> Iterator[ResultsFile]:
    """The results of requests with ids of one letter."""
    requests = write(path.parent / "requests.jsonl")
    with ResultsFile.open(path, requests, set(ids), origin, keeps=keeps) as file:
        yield file


def test_lines_are_added_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with opened(path) as file:
        file.append("a", "succeeded", BODY)
        file.append("b", "expired", None)
    assert results(path) == {"a": {"type": "succeeded", "message": {}}, "b": {"type": "expired"}}
    with opened(path) as file:
        assert (file.done, file.counts) == ({"a", "b"}, {"succeeded": 1, "expired": 1})
        file.append("c", "succeeded", BODY)
    assert set(results(path)) == {"a", "b", "c"}


@pytest.mark.parametrize("size", range(1, len(LINE)))
def test_a_torn_line_is_dropped_wherever_it_was_torn(size: int, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINE + LINE.replace(b'"a"', b'"b"')[:size])
    with opened(path) as file:
        assert file.done == {"a"}
        file.append("b", "succeeded", BODY)
    assert set(results(path)) == {"a", "b"}


def test_what_a_loss_of_power_leaves_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINE + b"\0" * 5_000)
    with opened(path) as file:
        assert file.done == {"a"}
    assert path.read_bytes() == LINE


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"my diary", ":1: no result"),
        (b"my diary\n", ":1: no result"),
        (LINE + b"\n", ":2: no result"),
        (b'{"custom_id":"a","result":{"type":"great"}}\n', ":1: no result"),
        (b'{"custom_id":["a"],"result":{"type":"errored"}}\n', ":1: no result"),
        (b"[]\n", ":1: no result"),
        (LINE.replace(b":", b": ").strip(), ":1: no result"),
        (LINE + LINE, ":2: a second result of 'a'"),
        (LINE.replace(b'"a"', b'"z"'), ":1: a result of 'z', which is not requested"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_as_it_is(
    data: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=said), opened(path):
        pass
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Origin("1" * 64, "tiny"), "the file of requests has changed"),
        (Origin("0" * 64, "smollm2"), "the model tiny, not smollm2"),
        (Origin("0" * 64, "tiny", "1/2"), "shard 1/1 of the requests, not 1/2"),
    ],
)
def test_results_of_something_else_are_refused_unless_they_are_to_be_kept(
    origin: Origin, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    with opened(path) as file:
        file.append("a", "succeeded", BODY)
    with pytest.raises(ConfigError, match=said), opened(path, origin=origin):
        pass
    with opened(path, origin=origin, keeps=True) as file:
        assert file.done == {"a"}
    with opened(path, origin=origin) as file:  # from now on this is what it was begun from
        assert file.done == {"a"}


@pytest.mark.parametrize("note", [None, "", '{"digest":', "[]", '{"model": "tiny"}'])
def test_without_a_note_that_can_be_read_the_ids_decide(note: str | None, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINE)
    if note is not None:
        path.with_name("results.jsonl.run").write_text(note)
    with opened(path) as file:
        assert file.done == {"a"}


def test_a_second_writer_is_refused_also_by_another_name(tmp_path: Path) -> None:
    path, other = tmp_path / "results.jsonl", tmp_path / "other.jsonl"
    with opened(path) as file:
        other.symlink_to(path)
        for name in (path, other):
            with pytest.raises(ConfigError, match="another process is writing"), opened(name):
                pass
        file.append("a", "succeeded", BODY)
    with opened(other) as file:
        assert file.done == {"a"}


def test_where_nothing_can_be_locked_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lock(handle: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(module, "lock", lock)
    with caplog.at_level(logging.WARNING), opened(tmp_path / "results.jsonl") as file:
        file.append("a", "succeeded", BODY)
    assert "no locks here" in caplog.text


def test_a_full_disk_cuts_no_line_in_two(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "results.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as file:
        file.append("a", "succeeded", BODY)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINE) + 9, before[1]))
        try:
            with pytest.raises(DiskFailed, match="1 results are there and whole"):
                file.append("b", "succeeded", BODY)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert path.read_bytes() == LINE
        file.append("b", "succeeded", BODY)
    assert set(results(path)) == {"a", "b"}


def test_where_nothing_can_be_written_it_is_said_before_anything_runs(tmp_path: Path) -> None:
    requests = write(tmp_path / "requests.jsonl")
    cases = {
        tmp_path: "is no file",
        Path(os.devnull): "is no file",
        tmp_path / "none" / "results.jsonl": "cannot write",
        requests: "has the requests",
    }
    for path, why in cases.items():
        with (
            pytest.raises(ConfigError, match=why),
            ResultsFile.open(path, requests, {"a"}, ORIGIN, keeps=False),
        ):
            pass
