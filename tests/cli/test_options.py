"""Flags and settings are the same thing, seen from two sides."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from minimsg.bench.settings import LoadSettings, VersusSettings
from minimsg.cli.bench import bench
from minimsg.cli.options import documented_fields, options_from
from minimsg.config import EngineConfig, ParserConfig, ServerConfig
from minimsg.parsing.formats import PARSERS
from minimsg.parsing.thinking import REASONING

WITHOUT_FLAG = {"page_size"}  # fixed: kernels are written for it


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags are tested as they are without any environment name set."""
    for name in [name for name in os.environ if name.startswith("MINIMSG_")]:
        monkeypatch.delenv(name)


@click.command()
@options_from(ServerConfig)
@options_from(EngineConfig)
def show(server_config: ServerConfig, engine_config: EngineConfig) -> None:
    click.echo(server_config)
    click.echo(engine_config)


def output(*arguments: str, env: dict[str, str] | None = None) -> str:
    result = CliRunner().invoke(show, list(arguments), env=env, terminal_width=200)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    "config", [ServerConfig, EngineConfig, ParserConfig, LoadSettings, VersusSettings]
)
def test_every_setting_has_help_and_so_a_flag(config: type) -> None:
    documented = {field.name for field in documented_fields(config)}
    assert {field.name for field in fields(config)} - documented <= WITHOUT_FLAG


@pytest.mark.parametrize("config", [ServerConfig, EngineConfig])
def test_every_flag_is_in_the_help_with_its_environment_name(config: type) -> None:
    text = output("--help")
    for field in documented_fields(config):
        assert f"--{field.name.replace('_', '-')} " in text
        assert f"env var: MINIMSG_{field.name.upper()}" in text


def test_without_flags_the_settings_are_the_defaults_of_the_dataclass() -> None:
    assert output() == f"{ServerConfig()}\n{EngineConfig()}\n"


def test_a_flag_sets_the_field_of_its_name_in_the_fields_own_type() -> None:
    expected = ServerConfig(port=0, data_dir=Path("/x"), ping_interval_s=0.5)
    text = output("--port", "0", "--data-dir", "/x", "--ping-interval-s", "0.5")
    assert text.splitlines()[0] == str(expected)


def test_the_environment_sets_what_no_flag_sets() -> None:
    env = {"MINIMSG_PORT": "9000", "MINIMSG_MAX_CONTEXT": "512"}
    assert output("--port", "1", env=env) == (
        f"{ServerConfig(port=1)}\n{EngineConfig(max_context=512)}\n"
    )


def test_a_value_outside_the_choices_is_refused_with_the_choices() -> None:
    result = CliRunner().invoke(show, ["--dtype", "int3"])
    assert result.exit_code == 2
    assert "bfloat16" in result.output


@pytest.mark.parametrize("value", ["-1", "many"])
def test_a_count_that_is_no_count_is_refused(value: str) -> None:
    assert CliRunner().invoke(show, ["--max-queue", value]).exit_code == 2


def test_every_parser_that_there_is_can_be_named() -> None:
    calls, reasoning = (field.metadata["choices"] for field in fields(ParserConfig))
    assert calls == ("auto", *PARSERS)
    assert reasoning == ("auto", *REASONING)


@pytest.mark.parametrize(
    ("flag", "value", "bounds"),
    [
        ("--port", "99999", "0<=x<=65535"),
        ("--threads", "0", "x>=1"),
        ("--max-sequences", "0", "x>=1"),
        ("--max-context", "0", "x>=1"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_the_bounds(
    flag: str, value: str, bounds: str
) -> None:
    result = CliRunner().invoke(show, [flag, value])
    assert result.exit_code == 2
    assert flag in result.output
    assert bounds in result.output


def test_a_flag_without_value_is_a_switch() -> None:
    assert next(p for p in bench.params if p.name == "quick").is_flag  # type: ignore[attr-defined]
