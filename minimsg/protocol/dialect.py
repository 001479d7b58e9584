"""Which Messages API a request speaks: profile, API version, betas, and what is off here.

`Dialect` travels with a request from its headers to the last rule and is the only thing
that rules ask. Knows the two versions on the wire, the profiles and the features that a
model or a configuration can lack; not what hangs on them: fields in `gates.py`, rules in
`rules/`. Source: Messages API reference, versioning and beta headers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from minimsg.features import FEATURES

Profile = Literal["compat", "strict"]
Version = Literal["2023-06-01", "2026-10-21"]

OLD: Final[Version] = "2023-06-01"
NEW: Final[Version] = "2026-10-21"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read one request. The default is what a client without any header gets."""

    profile: Profile = "compat"
    version: Version = OLD
    betas: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()  # features that the loaded model cannot do
    without: frozenset[str] = frozenset()  # features that the configuration switches off
    drops_server_tools: bool = False  # tools that the hosted API runs are left out, not refused
    is_in_batch: bool = False  # the request is one of a message batch

    @property
    def is_strict(self) -> bool:
        """Whether the hosted API's refusals hold where local servers are lenient."""
        return self.profile == "strict"

    def has_beta(self, *names: str) -> bool:
        """Whether the request asks for one of these betas."""
        return not self.betas.isdisjoint(names)

    def can(self, feature: str) -> bool:
        """Whether `feature` works here; one of `FEATURES`."""
        assert feature in FEATURES, feature
        return feature not in self.lacking and feature not in self.without

    def takes(self, feature: str) -> bool:
        """Whether a request may ask for `feature`: compat lets it ask in vain, strict does not."""
        assert feature in FEATURES, feature
        return self.can(feature) or not (self.is_strict or feature in self.without)


PLAIN: Final = Dialect()
