"""The cases as pytest items, for the CI of a server: one test a case.

    # conftest.py
    pytest_plugins = ["minimsg.conformance.pytest_plugin"]

    @pytest.fixture(scope="session")
    def messages_url():              # start your server here
        yield "http://127.0.0.1:8080"

    # test_messages_api.py
    def test_the_messages_api(messages_case):
        messages_case()

`--messages-url` is what the fixture gives unless it is overridden; `--messages-case`,
`--messages-profile` and `--messages-key` choose. What cannot be looked at is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from minimsg.conformance.case import Case
from minimsg.conformance.catalog import load_cases, select
from minimsg.conformance.report import explanation
from minimsg.conformance.runner import Session, applicable
from minimsg.conformance.settings import PROFILES, Settings
from minimsg.conformance.verdict import Verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("minimsg conform")
    group.addoption("--messages-url", default="http://127.0.0.1:8080", help="Server under test.")
    group.addoption("--messages-key", help="API key.")
    group.addoption("--messages-model", help="Model; default is the first of GET /v1/models.")
    group.addoption("--messages-profile", default="compat", choices=PROFILES)
    group.addoption("--messages-case", action="append", default=[], help="Id, with * and ?.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "messages_case" in metafunc.fixturenames:
        option = metafunc.config.getoption
        cases = select(load_cases(), option("--messages-case"))
        chosen = applicable(cases, option("--messages-profile"))
        metafunc.parametrize("messages_case", chosen, ids=lambda case: case.id, indirect=True)


@pytest.fixture(scope="session")
def messages_url(pytestconfig: pytest.Config) -> str:
    """Where the server under test listens; override it to start one."""
    return str(pytestconfig.getoption("--messages-url"))


@pytest.fixture(scope="session")
def messages_session(messages_url: str, pytestconfig: pytest.Config) -> Session:
    """The server, reached, with its features known."""
    option = pytestconfig.getoption
    settings = Settings(
        messages_url,
        key=option("--messages-key"),
        model=option("--messages-model"),
        profile=option("--messages-profile"),
    )
    return asyncio.run(Session.open(settings, load_cases()))


@pytest.fixture
def messages_case(request: pytest.FixtureRequest, messages_session: Session) -> Callable[[], None]:
    """A case, to be called: it fails with its whole explanation."""
    case: Case = request.param

    def check() -> None:
        run = messages_session.report([asyncio.run(messages_session.play(case))])
        (result,) = run.results
        if result.verdict in (Verdict.SKIP, Verdict.INCONCLUSIVE):
            pytest.skip(f"{result.verdict}: {result.reason}")
        if result.breaks_the_run:
            pytest.fail("\n".join(explanation(run, result)), pytrace=False)

    return check
