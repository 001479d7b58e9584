"""Failures that look wrong: envelope, type, status, ids, words."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.mutant import Answered, Asked, mutants

MEGABYTE: Final = 1024**2


def error(answered: Answered) -> dict[str, Any]:
    """The error object of a failure; `{}` for any other answer."""
    found = answered.json.get("error") if answered.status >= 400 else None
    return found if isinstance(found, dict) else {}


def change(answered: Answered, **fields: object) -> None:
    """Change fields of the error of a failure."""
    if found := error(answered):
        answered.put(answered.json | {"error": found | fields})


def other_envelope(asked: Asked, answered: Answered) -> None:
    """Failures come in the envelope of another API."""
    if found := error(answered):
        answered.put({"error": {"code": answered.status, **found}})


def detail(asked: Asked, answered: Answered) -> None:
    """Failures are {"detail": ...}."""
    if found := error(answered):
        answered.put({"detail": found["message"]})


def bare_text(asked: Asked, answered: Answered) -> None:
    """Failures are bare text."""
    if found := error(answered):
        answered.body = found["message"].encode()
        answered.headers["content-type"] = "text/plain"


def html_failure(asked: Asked, answered: Answered) -> None:
    """The type of a failure's body is text/html."""
    if error(answered):
        answered.headers["content-type"] = "text/html"


def no_request_id(asked: Asked, answered: Answered) -> None:
    """The envelope has no request_id."""
    if error(answered):
        answered.put({k: v for k, v in answered.json.items() if k != "request_id"})


def no_request_id_header(asked: Asked, answered: Answered) -> None:
    """No answer has the header request-id."""
    answered.headers.pop("request-id", None)


def other_request_id(asked: Asked, answered: Answered) -> None:
    """The request id of the envelope is not that of the header."""
    if error(answered):
        answered.put(answered.json | {"request_id": "req_other"})


def one_request_id(asked: Asked, answered: Answered) -> None:
    """Every answer has the same request id."""
    answered.headers["request-id"] = "req_01"


def status_422(asked: Asked, answered: Answered) -> None:
    """What is invalid is 422."""
    if answered.status == 400:
        answered.status = 422


def status_500(asked: Asked, answered: Answered) -> None:
    """What is invalid is 500."""
    if answered.status == 400:
        answered.status = 500


def status_200(asked: Asked, answered: Answered) -> None:
    """Failures are 200 with an error in the body."""
    if error(answered):
        answered.status = 200


def not_found_is_400(asked: Asked, answered: Answered) -> None:
    """What is not found is 400."""
    if answered.status == 404:
        answered.status = 400


def other_type(asked: Asked, answered: Answered) -> None:
    """Every failure is of type api_error."""
    change(answered, type="api_error")


def no_error_type(asked: Asked, answered: Answered) -> None:
    """An error has no type."""
    if found := error(answered):
        answered.put(answered.json | {"error": {"message": found["message"]}})


def no_words(asked: Asked, answered: Answered) -> None:
    """An error has an empty message."""
    change(answered, message="")


def traceback(asked: Asked, answered: Answered) -> None:
    """An error shows the server's traceback."""
    words = 'Traceback (most recent call last):\n  File "server.py", line 1'
    change(answered, message=words)


def no_path(asked: Asked, answered: Answered) -> None:
    """An error does not say where."""
    change(answered, message="Bad request.")


def retry_a_refusal(asked: Asked, answered: Answered) -> None:
    """Refusals ask to be retried."""
    if answered.status == 400:
        answered.headers["x-should-retry"] = "true"


def head_fails(asked: Asked, answered: Answered) -> None:
    """HEAD is 500."""
    if asked.method == "HEAD":
        answered.status = 500


def no_preflight(asked: Asked, answered: Answered) -> None:
    """Web pages are not told what they may send."""
    for name in [name for name in answered.headers if name.startswith("access-control-")]:
        del answered.headers[name]


def no_thread_code(asked: Asked, answered: Answered) -> None:
    """The refusal of a thread has no code."""
    if found := error(answered):
        answered.put(answered.json | {"error": {k: found[k] for k in ("type", "message")}})


def small_bodies(asked: Asked, answered: Answered) -> None:
    """A body of more than a megabyte is too large."""
    if len(asked.body) > MEGABYTE:
        answered.status = 413
        said = {"type": "request_too_large", "message": "The body is over the limit."}
        request_id = answered.headers.get("request-id")
        answered.put({"type": "error", "error": said, "request_id": request_id})


MUTANTS: Final = mutants(
    "answer",
    {
        other_envelope: "errors.envelope*",
        detail: "errors.*",
        bare_text: "errors.*",
        html_failure: "errors.json*",
        no_request_id: "errors.request-id*",
        no_request_id_header: "errors.request-id*",
        other_request_id: "errors.request-id*",
        one_request_id: "errors.request-id*",
        status_422: "errors.*",
        status_500: "errors.*",
        status_200: "request.*",
        not_found_is_400: "*.unknown*",
        other_type: "errors.type*",
        no_error_type: "errors.*",
        no_words: "errors.envelope*",
        traceback: "errors.words*",
        no_path: "request.path*",
        retry_a_refusal: "errors.no-retry",
        head_fails: "http.head*",
        no_preflight: "http.preflight",
        no_thread_code: "profile.thread",
        small_bodies: "request.long-text",
    },
)
