"""What a conformance case is: the shape of one table in `cases/*.toml`, checked as it is read.

A case sends its steps in order and then holds what came back against a rule. Whatever is
not true of every model's words is put under `provided`: where it does not hold, the case is
inconclusive, never failed. Knows the words of a case and not what they do: requests are
made in `request.py`, expectations held in `asserts.py`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from minimsg.conformance.settings import PROFILES, Profile, Version

ID_PATTERN: Final = r"^[a-z0-9-]+(\.[a-z0-9-]+)+$"
NAME_PATTERN: Final = r"^[a-z][a-z0-9_]*$"

Text = Annotated[str, Field(min_length=1)]
Expression = Annotated[str, Field(min_length=1)]  # of `expression.py`
Json = dict[str, object]


class Level(StrEnum):
    """How much a rule weighs; MAY and PROBE never fail a run."""

    MUST = "MUST"  # a client breaks without it
    SHOULD = "SHOULD"  # a client is misled without it
    MAY = "MAY"  # good to have
    PROBE = "PROBE"  # what servers do here is worth knowing; no rule


class Table(BaseModel):
    """A TOML table whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def complaint(error: ValidationError, whole: str = "") -> str:
    """The first thing that is wrong, after its path; `whole` stands for the path of everything."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}"


class Expect(Table):
    """What a reply must be; every key that is given must hold."""

    # One of these; 200 unless an error is due.
    status: int | list[int] | Literal["any"] | None = None
    error: str | None = None  # the error's type; the status is then that of the type
    says: list[Text] = []  # words in the error's message, whatever their case
    headers: dict[str, str] = {}  # patterns with * and ?, case kept
    lacks: list[Text] = []  # headers that may not be there
    shape: Text | None = None  # a name of `shapes.py`
    stream: list[Text] = []  # names of `streams.py`
    holds: list[Expression] = []


class Step(Table):
    """One request, or several at once.

    `send` is laid over the plainest request there is, unless `bare`; `text` is sent as it
    stands instead, and `raw` are the bytes of a whole exchange, in pieces.
    """

    name: Annotated[str, Field(pattern=NAME_PATTERN)] = "reply"
    method: Text = "POST"
    path: Text = "/v1/messages"
    headers: dict[str, str] = {}  # "-" leaves out one that is otherwise sent
    send: Json = {}
    bare: bool = False
    without: list[Text] = []  # keys that `send` and the plainest request leave out
    text: str | None = None
    upload: dict[str, str] | None = None  # a form: its fields; `file` is sent as a file
    encoding: Literal["gzip", "deflate"] | None = None
    raw: list[str] = []
    together: list[Json] = []  # what is laid over `send`, one for each of several at once
    shared: int = 0  # so many answers do for all cases that send the same bytes
    leave_after_bytes: int | None = None  # hang up once that much has come; 0: at once
    until: Expression | None = None  # ask again, for some seconds, until this holds
    provided: dict[Expression, Text] = {}  # else inconclusive, for this reason
    expect: Expect = Expect()

    @property
    def variants(self) -> list[Json]:
        """What is laid over `send`: one request for each."""
        return self.together or [{}]


class Case(Table):
    """A rule, where it stands, and how to see whether it is kept."""

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    title: Text
    level: Level = Level.MUST
    rule: Text
    where: Text
    needs: list[Text] = []  # features of `features.toml`
    profiles: list[Profile] = list(PROFILES)
    version: Version | None = None  # None: whichever the run uses
    alone: bool = False  # nothing else may run beside it
    steps: Annotated[list[Step], Field(min_length=1)]

    @property
    def theme(self) -> str:
        """The first part of the id, and the name of its file."""
        return self.id.partition(".")[0]
