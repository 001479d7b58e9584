"""`minimsg batch list`: pages in both directions, and all of them while batches are deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .batch_asking import EMPTY, batch, page, requests
from .pretending import error, pretending
from .process import Serving


def test_lists_go_in_both_directions_a_page_at_a_time_or_all(
    serving: Serving, tmp_path: Path
) -> None:
    file = requests(tmp_path, "a")
    made = [json.loads(batch("create", file, "--json", url=serving.url).stdout) for _ in range(5)]
    ids = [each["id"] for each in reversed(made)]  # newest first

    def listed(*flags: str) -> tuple[list[str], bool]:
        page = json.loads(batch("list", "--json", *flags, url=serving.url).stdout)
        found = [each["id"] for each in page["data"]]
        assert (page["first_id"], page["last_id"]) == (found[0], found[-1])
        return found, page["has_more"]

    assert listed("--limit", "2") == (ids[:2], True)
    assert listed("--limit", "2", "--after-id", ids[1]) == (ids[2:4], True)
    assert listed("--limit", "2", "--before-id", ids[4]) == (ids[2:4], True)
    assert listed("--limit", "2", "--before-id", ids[4], "--all") == (ids[:4], False)
    assert listed("--limit", "2", "--all")[0][:5] == ids
    shown = batch("list", "--limit", "2", url=serving.url)
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["ID", *ids[:2]]
    assert f"--after-id {ids[1]}" in shown.stderr
    both = batch("list", "--after-id", ids[0], "--before-id", ids[1], url=serving.url)
    assert both.exit_code == 2
    for each in ids:
        batch("show", each, "--wait", url=serving.url)
        assert batch("delete", each, url=serving.url).exit_code == 0


@pytest.mark.parametrize("flags", [[], ["--before-id", "msgbatch_0"]])
def test_a_list_of_all_goes_on_where_the_batch_it_had_come_to_is_deleted(flags: list[str]) -> None:
    deleted = (400, error("invalid_request_error", "no item of this list has that id"))
    pages = [page("9", "8"), deleted, page("7", "6", is_last=True)]
    with pretending(GET_batches=[*pages]) as server:
        listed = batch("list", "--all", "--json", *flags, url=server.url)
    found = json.loads(listed.stdout)
    ids = [each["id"] for each in found["data"]]
    assert ids == (["7", "6", "9", "8"] if flags else ["9", "8", "7", "6"])
    assert (found["first_id"], found["last_id"]) == (ids[0], ids[-1])
    name, nearest, other = ("before", "9", "8") if flags else ("after", "8", "9")
    assert [asked.partition("&")[2] for asked in server.asked[1:]] == [
        f"{name}_id={each}" for each in (nearest, other)
    ]


def test_a_list_of_all_that_was_deleted_amid_it_ends_with_what_it_had() -> None:
    deleted = (400, error("invalid_request_error", "no item of this list has that id"))
    with pretending(GET_batches=[page("9", "8"), deleted, deleted, (200, EMPTY)]) as server:
        found = json.loads(batch("list", "--all", "--json", url=server.url).stdout)
    assert (found["first_id"], found["last_id"], found["has_more"]) == ("9", "8", False)
    with pretending(GET_batches=deleted) as server:
        refused = batch("list", "--all", "--after-id", "x", url=server.url)
    assert (refused.exit_code, len(server.asked)) == (2, 1)
