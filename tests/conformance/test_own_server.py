"""The whole suite against our own server: no MUST and no SHOULD is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from minimsg.conformance.catalog import load_cases, select
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


# What the strict profile refuses of a model that cannot think, and Claude Code sends.
OF_MODELS_THAT_THINK = {
    *(f"thinking.accepted.{form}" for form in ("adaptive", "adaptive-omitted", "enabled")),
    "thinking.accepted.adaptive-summarized",
    "versions.claude-code.thinking",
    "versions.claude-code.effort",
}
# Without thinking in the request a strict server does not look at signatures.
NOT_LOOKED_AT = {"profile.compat.signature-of-another"}


@pytest.mark.proof
@pytest.mark.parametrize(("served", "asked"), [("compat", "strict"), ("strict", "compat")])
async def test_the_other_profile_is_broken_where_profiles_differ_and_nowhere_else(
    serve: Serve, served: Profile, asked: Profile
) -> None:
    url = await serve("tiny", profile=served)
    done = await run(applicable(load_cases(), asked), Settings(url, profile=asked))
    differing = {case.id for case in load_cases() if case.id.startswith(f"profile.{asked}.")}
    if asked == "compat":
        differing = (differing | OF_MODELS_THAT_THINK) - NOT_LOOKED_AT
    assert {r.id for r in done.results if r.verdict == Verdict.FAIL} == differing


async def test_a_server_with_keys_keeps_every_rule_about_them(serve: Serve, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"me": "sk-conform-7421"}')
    url = await serve("scripted", keys_file=keys)
    done = await run(select(load_cases(), ["auth.*"]), Settings(url, key="sk-conform-7421"))
    assert [(r.id, r.reason, r.failure) for r in done.results if r.verdict != Verdict.PASS] == []
