"""The whole suite against our own server: no MUST and no SHOULD is broken."""

from __future__ import annotations

import pytest

from minimsg.conformance.catalog import load_cases
from minimsg.conformance.runner import applicable, run
from minimsg.conformance.settings import Profile, Settings, Version
from minimsg.conformance.verdict import Verdict

from .conftest import Serve


@pytest.mark.parametrize(
    ("profile", "version"),
    [
        ("compat", "2023-06-01"),
        pytest.param("compat", "2026-10-21", marks=pytest.mark.proof),
        pytest.param("strict", "2023-06-01", marks=pytest.mark.proof),
        pytest.param("strict", "2026-10-21", marks=pytest.mark.proof),
    ],
)
async def test_our_server_breaks_no_rule_of_its_profile(
    serve: Serve, profile: Profile, version: Version
) -> None:
    url = await serve("tiny", profile=profile)
    settings = Settings(url, profile=profile, version=version)
    done = await run(applicable(load_cases(), profile), settings)
    failures = [(r.id, r.failure and (r.failure.expected, r.failure.seen)) for r in done.broken]
    assert failures == []
    assert done.counts()[Verdict.PASS] >= len(done.results) * 0.85  # the rest are skipped
    assert done.counts()[Verdict.INCONCLUSIVE] <= len(done.results) * 0.05
