"""Every failure that a request, a file or a device can cause, as one tree.

    MinimsgError
    ├── RequestError                 answered over HTTP in the API's envelope
    │   ├── InvalidRequest           400 invalid_request_error   names the JSON path
    │   ├── Unauthorized             401 authentication_error
    │   ├── Forbidden                403 permission_error
    │   ├── NotFound                 404 not_found_error
    │   ├── MethodNotAllowed         405 invalid_request_error
    │   ├── RequestTimeout           408 invalid_request_error
    │   ├── RequestTooLarge          413 request_too_large
    │   ├── UnsupportedMediaType     415 invalid_request_error
    │   ├── RateLimited              429 rate_limit_error
    │   ├── HeadersTooLarge          431 invalid_request_error
    │   ├── InternalError            500 api_error
    │   ├── NotImplementedHere       501 api_error
    │   ├── StoreFull                507 api_error
    │   └── Overloaded               529 overloaded_error
    ├── ModelNotFound                no such model, folder or file
    ├── CheckpointError              a model file is broken, truncated, lying or incomplete
    ├── UnsupportedModel             a config value that changes the maths and is not understood
    ├── TemplateError                a chat template that fails or exceeds its budget
    ├── KernelUnavailable            the kernel asked for cannot run here
    ├── ConfigError                  settings that contradict each other or the machine
    ├── InvalidTrace                 a record of a request that cannot be read
    ├── DiskFailed                   the disk takes no more; what was written before is whole
    └── GenerationFailed             one sequence failed in the engine; its neighbours did not

A message says what was seen, what was allowed and what to do. This module knows
no HTTP library: `server/middleware.py` turns a `RequestError` into a response.
Source of statuses and types: the Messages API error page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class MinimsgError(Exception):
    """Anything minimsg raises on purpose."""


class RequestError(MinimsgError):
    """A request that cannot be served, with the status and error type it is answered with.

    `error_code` and `details` (JSON values) are what a client may key on besides the type.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"

    def __init__(
        self,
        message: str,
        *,
        error_code: str | None = None,
        details: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code
        self.details = dict(details or {})
        self.headers = dict(headers or {})


class InvalidRequest(RequestError):
    """400: the request breaks a rule. `path` is the JSON path, such as `messages.0.content`."""

    status = 400
    type = "invalid_request_error"

    def __init__(
        self,
        path: str,
        why: str,
        *,
        error_code: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        message = f"{path}: {why}" if path else why
        super().__init__(message, error_code=error_code, details=details)
        self.path = path
        self.why = why


class Unauthorized(RequestError):
    """401: no key, or none that is known here."""

    status = 401
    type = "authentication_error"


class Forbidden(RequestError):
    """403: a host name or a web page that this server does not answer."""

    status = 403
    type = "permission_error"


class NotFound(RequestError):
    """404: no such route, model or object."""

    status = 404
    type = "not_found_error"


class MethodNotAllowed(RequestError):
    """405: the route exists, not with this method."""

    status = 405
    type = "invalid_request_error"


class RequestTimeout(RequestError):
    """408: the body did not arrive in time."""

    status = 408
    type = "invalid_request_error"


class RequestTooLarge(RequestError):
    """413: more bytes than `limits.py` allows."""

    status = 413
    type = "request_too_large"


class UnsupportedMediaType(RequestError):
    """415: a body that does not say it is JSON."""

    status = 415
    type = "invalid_request_error"


class RateLimited(RequestError):
    """429: this tenant used up its share; `retry-after` says when there is more."""

    status = 429
    type = "rate_limit_error"


class HeadersTooLarge(RequestError):
    """431: a header or the request line is longer than `limits.py` allows."""

    status = 431
    type = "invalid_request_error"


class InternalError(RequestError):
    """500: our fault; the log has the cause under the same request id."""


class NotImplementedHere(RequestError):
    """501: the served model cannot do this at all."""

    status = 501


class StoreFull(RequestError):
    """507: the disk takes no more; nothing of the request was kept, nothing older is lost."""

    status = 507

    def __init__(self) -> None:
        super().__init__(
            "The server cannot store this: its disk takes no more.",
            headers={"x-should-retry": "false"},
        )


class Overloaded(RequestError):
    """529: the queue is full or the server is draining; try again."""

    status = 529
    type = "overloaded_error"


class ModelNotFound(MinimsgError):
    """No model of that name, in no place that was looked at."""


class CheckpointError(MinimsgError):
    """A model file that cannot be trusted: the file, what was seen, what was expected."""

    def __init__(self, file: object, seen: str, expected: str) -> None:
        super().__init__(f"{file}: {seen}; expected {expected}")
        self.file = str(file)
        self.seen = seen
        self.expected = expected

    def __reduce__(self) -> tuple[type[CheckpointError], tuple[str, str, str]]:
        return type(self), (self.file, self.seen, self.expected)


class UnsupportedModel(MinimsgError):
    """An architecture or a config value that would give wrong numbers if ignored."""


class TemplateError(MinimsgError):
    """A chat template that does not compile, raises, or exceeds its budget."""


class KernelUnavailable(MinimsgError):
    """An explicitly requested kernel that cannot run, with the reason."""


class ConfigError(MinimsgError):
    """Settings that cannot work together or on this machine (exit code 2)."""


class InvalidTrace(MinimsgError):
    """A record that is no record of a request: what is wrong, and where (exit code 2)."""


class DiskFailed(MinimsgError):
    """A file that cannot be written to its end (exit code 1); what to do is in the message."""


class GenerationFailed(MinimsgError):
    """The engine gave up on one sequence; the message is the cause."""
