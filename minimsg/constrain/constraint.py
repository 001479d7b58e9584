"""What a request asks of the form of its reply, as plain data that crosses processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from minimsg.protocol.wire import JsonObject


@dataclass(frozen=True, slots=True)
class Constraint:
    """Beside the tools that the model may call, which are where their parser finds them."""

    must_call: list[str] = field(default_factory=list)  # one of these; empty: as it likes
    is_one_call: bool = False  # at most; with `must_call`, exactly
    strict: dict[str, str] = field(default_factory=dict)  # a tool's name -> its schema's JSON path
    schema: JsonObject | None = None  # of a reply that is one JSON value
    schema_path: str = "output_config.format.schema"
    thinking_budget: int | None = None  # ids
