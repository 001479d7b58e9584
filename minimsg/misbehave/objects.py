"""Counts, models, batches and files that are wrong."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.misbehave.mutant import Answered, Asked, mutants


def change(answered: Answered, **fields: Any) -> None:
    """Change fields of a JSON answer that succeeded."""
    if answered.status == 200 and answered.json:
        answered.put(answered.json | fields)


def is_count(asked: Asked, answered: Answered) -> bool:
    return "/count_tokens" in asked.path and answered.status == 200


def is_results(asked: Asked, answered: Answered) -> bool:
    return asked.path.endswith("/results") and answered.status == 200


def is_page(asked: Asked, answered: Answered) -> bool:
    return asked.method == "GET" and answered.status == 200 and "data" in answered.json


def one_off(asked: Asked, answered: Answered) -> None:
    """A count is one too many."""
    if is_count(asked, answered):
        change(answered, input_tokens=answered.json["input_tokens"] + 1)


def count_zero(asked: Asked, answered: Answered) -> None:
    """Every count is 0."""
    if is_count(asked, answered):
        change(answered, input_tokens=0)


def count_text(asked: Asked, answered: Answered) -> None:
    """A count is a text."""
    if is_count(asked, answered):
        change(answered, input_tokens=str(answered.json["input_tokens"]))


def count_elsewhere(asked: Asked, answered: Answered) -> None:
    """A count has another name."""
    if is_count(asked, answered):
        answered.put({"total_tokens": answered.json["input_tokens"]})


def other_models(asked: Asked, answered: Answered) -> None:
    """Models are listed as another API lists them."""
    if asked.path.startswith("/v1/models") and is_page(asked, answered):
        names = [{"id": m["id"], "object": "model"} for m in answered.json["data"]]
        answered.put({"object": "list", "data": names})


def no_lifecycle(asked: Asked, answered: Answered) -> None:
    """A model does not say whether it is retired."""
    if asked.path.startswith("/v1/models") and is_page(asked, answered):
        models = [{k: v for k, v in m.items() if k != "lifecycle"} for m in answered.json["data"]]
        change(answered, data=models)


def created_as_number(asked: Asked, answered: Answered) -> None:
    """created_at is a number."""
    if asked.path.startswith("/v1/models/"):
        change(answered, created_at=1700000000)


def always_more(asked: Asked, answered: Answered) -> None:
    """Every page says that there is another."""
    if is_page(asked, answered):
        change(answered, has_more=True)


def no_ids_of_pages(asked: Asked, answered: Answered) -> None:
    """A page does not say its first and last id."""
    if is_page(asked, answered):
        change(answered, first_id=None, last_id=None)


def limit_ignored(asked: Asked) -> None:
    """limit is not looked at."""
    asked.path = asked.path.replace("limit=", "no_limit=")


def after_id_ignored(asked: Asked) -> None:
    """after_id and before_id are not looked at."""
    asked.path = asked.path.replace("after_id=", "a=").replace("before_id=", "b=")


def blank_line(asked: Asked, answered: Answered) -> None:
    """Results of a batch have a blank line."""
    if is_results(asked, answered):
        answered.body = answered.body.replace(b"\n", b"\n\n")


def result_lost(asked: Asked, answered: Answered) -> None:
    """A result of a batch is missing."""
    if is_results(asked, answered):
        answered.body = answered.body.partition(b"\n")[2]


def bare_errors(asked: Asked, answered: Answered) -> None:
    """An errored result has no envelope."""
    if is_results(asked, answered):
        lines = [json.loads(line) for line in answered.body.split(b"\n") if line]
        for line in lines:
            if line["result"]["type"] == "errored":
                line["result"]["error"] = line["result"]["error"]["error"]
        answered.body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def counts_lost(asked: Asked, answered: Answered) -> None:
    """An ended batch counts nothing."""
    if answered.json.get("processing_status") == "ended":
        zero = dict.fromkeys(answered.json["request_counts"], 0)
        change(answered, request_counts=zero)


def never_ends(asked: Asked, answered: Answered) -> None:
    """A batch has no ended_at and no results_url."""
    if answered.json.get("type") == "message_batch":
        change(answered, ended_at=None, results_url=None)


def foreign_batch_id(asked: Asked, answered: Answered) -> None:
    """A new batch has the id of another API."""
    if answered.json.get("type") == "message_batch" and asked.method == "POST":
        change(answered, id=answered.json["id"].replace("msgbatch_", "batch_"))


def size_lost(asked: Asked, answered: Answered) -> None:
    """A file has no size."""
    if answered.json.get("type") == "file":
        change(answered, size_bytes=0)


def name_lost(asked: Asked, answered: Answered) -> None:
    """Every file is called upload."""
    if answered.json.get("type") == "file":
        change(answered, filename="upload")


def delete_unnamed(asked: Asked, answered: Answered) -> None:
    """A deletion is answered with nothing."""
    if asked.method == "DELETE" and answered.status == 200:
        answered.put({})


def unknown_cursor_taken(asked: Asked) -> None:
    """An after_id that nobody has is the beginning of the list."""
    if "after_id=no-such" in asked.path:
        asked.path = asked.path.partition("?")[0]


def deleted_stays(asked: Asked) -> None:
    """What is deleted stays."""
    if asked.method == "DELETE":
        asked.method = "GET"


ANSWERS: Final = mutants(
    "answer",
    {
        one_off: "count.usage*",
        count_zero: "count.*",
        count_text: "count.shape*",
        count_elsewhere: "count.shape*",
        other_models: "models.*",
        no_lifecycle: "models.*",
        created_as_number: "models.one*",
        always_more: "models.*",
        no_ids_of_pages: "models.*",
        blank_line: "batches.results*",
        result_lost: "batches.results*",
        bare_errors: "batches.results*",
        counts_lost: "batches.results*",
        never_ends: "batches.results*",
        foreign_batch_id: "batches.created*",
        size_lost: "files.uploaded*",
        name_lost: "files.*",
        delete_unnamed: "[bf]*.delete*",
    },
)
REQUESTS: Final = mutants(
    "request",
    {
        limit_ignored: "*s.paging*",
        after_id_ignored: "models.paging*",
        unknown_cursor_taken: "models.paging*",
        deleted_stays: "[bf]*.delete*",
    },
)
MUTANTS: Final = ANSWERS + REQUESTS
