"""A comparison's JSON report, read again: for tables and pages made of it later.

The report is written by `Comparison.as_dict` (`versus.py`); this is its other half. Imports
no torch.
"""

from __future__ import annotations

import json
from dataclasses import field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from minimsg.bench.findings import Accuracy, Spread
from minimsg.bench.limits import Limits
from minimsg.bench.rounds import Round
from minimsg.errors import ConfigError
from minimsg.machine import Machine


@dataclass(frozen=True)
class Stored:
    """What tables and plots need of a report; the names are its keys."""

    kind: str
    model: str
    spreads: dict[str, Spread]
    rounds: dict[str, list[Round]]
    noise: list[str]
    settings: dict[str, object]
    machine: Machine
    versions: dict[str, str | None]
    accuracy: dict[str, Accuracy] = field(default_factory=dict)
    limits: Limits | None = None
    peer: dict[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Who was compared with whom."""
        told = (self.peer.get(name) for name in ("model_type", "dtype", "model"))
        peer = next((str(each) for each in told if each), "")
        return f"{self.model} {self.settings.get('dtype')} beside {self.kind} {peer}".strip()

    @classmethod
    def of(cls, report: object) -> Stored:
        """Raises ConfigError if it is no report of a comparison."""
        try:
            return TypeAdapter(cls).validate_python(report)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"no report of minimsg bench --vs: {where}: {first['msg']}"
            ) from error

    @classmethod
    def read(cls, file: Path) -> Stored:
        """Raises ConfigError, which names the file."""
        try:
            return cls.of(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, OSError, ConfigError) as error:
            raise ConfigError(f"{file}: {error}") from error
