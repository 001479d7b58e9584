"""The command as a whole: light to start, every verb explained, every failure one paragraph."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from minimsg.cli import main as cli
from minimsg.errors import ConfigError, GenerationFailed, ModelNotFound

HEAVY = ("torch", "aiohttp", "tokenizers", "rich", "numpy", "pydantic", "transformers", "asyncio")


def imported_by(statement: str) -> list[str]:
    """Which of HEAVY a new interpreter has imported after `statement`."""
    script = f"{statement}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    found: list[str] = eval(done.stdout.splitlines()[-1])
    return found


def test_help_imports_nothing_heavy() -> None:
    statement = "from minimsg.cli.main import main; main(['--help'], standalone_mode=False)"
    assert imported_by(statement) == []


@pytest.mark.parametrize("verb", list(cli.VERBS))
def test_the_help_of_a_verb_has_an_example_and_imports_nothing_heavy(verb: str) -> None:
    result = CliRunner().invoke(cli.main, [verb, "--help"])
    assert result.exit_code == 0
    assert f"  minimsg {verb}" in result.output
    statement = f"from minimsg.cli.main import main; main(['{verb}', '-h'], standalone_mode=False)"
    assert imported_by(statement) == []


def test_help_lists_every_verb_with_what_it_does_and_how_to_complete() -> None:
    text = CliRunner().invoke(cli.main, ["--help"]).output
    commands = dict(
        line.strip().split(maxsplit=1) for line in text[text.index("Commands:") :].splitlines()[1:]
    )
    assert list(commands) == list(cli.VERBS)
    assert "_MINIMSG_COMPLETE" in text


def test_an_unknown_verb_is_refused() -> None:
    result = CliRunner().invoke(cli.main, ["sing"])
    assert result.exit_code == 2
    assert "No such command 'sing'" in result.output
    assert "Did you mean" not in result.output


def test_an_unknown_verb_that_is_near_a_known_one_is_refused_with_it() -> None:
    result = CliRunner().invoke(cli.main, ["serv"])
    assert result.exit_code == 2
    assert result.output.count("Did you mean 'serve'?") == 1


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ConfigError("port 80 is taken; choose another one with --port"), 2),
        (ModelNotFound("no model 'x'"), 2),
        (GenerationFailed("NaN in the logits"), 70),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
    ],
)
def test_a_failure_ends_with_its_exit_code_and_without_a_traceback(
    failure: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def fail() -> None:
        raise failure

    monkeypatch.setattr(cli.Verbs, "get_command", lambda *_: fail)
    result = CliRunner().invoke(cli.main, ["serve"])
    assert result.exit_code == code
    assert str(failure) in result.output
    assert "Traceback" not in result.output
