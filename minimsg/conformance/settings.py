"""How a run goes: where, as whom, which profile and version. Light, so that `--help` is, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Profile = Literal["compat", "strict"]
Version = Literal["2023-06-01", "2026-10-21"]
PROFILES: Final[tuple[Profile, ...]] = ("compat", "strict")
VERSIONS: Final[tuple[Version, ...]] = ("2023-06-01", "2026-10-21")


@dataclass(frozen=True)
class Settings:
    """One run."""

    url: str
    key: str | None = None
    model: str | None = None  # None: the first of GET /v1/models
    profile: Profile = "compat"
    version: Version = "2023-06-01"
    seed: int = 0
    jobs: int = 4
    timeout_s: float = 60.0
    suite: str = ""  # which release of the cases, for the report
