"""The `minimsg` command: which verbs there are, and how a failure ends.

Knows the names of the verbs and imports a verb's module only when it is asked for;
those modules in turn import torch, aiohttp and rich inside their functions, so that
`minimsg --help` answers in a blink. Flags of the settings are made in `options.py`.

Exit codes: 0 done, 1 a check failed or the disk did, 2 a setting, a model or a request
that cannot work, 70 the engine failed, 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module

import click

from minimsg import __version__
from minimsg.errors import DiskFailed, GenerationFailed, MinimsgError

VERBS = {
    "serve": "minimsg.cli.serve",
    "run": "minimsg.cli.run",
    "pull": "minimsg.cli.pull",
    "ls": "minimsg.cli.ls",
    "show": "minimsg.cli.show",
    "doctor": "minimsg.cli.doctor",
    "top": "minimsg.cli.top",
    "batch": "minimsg.cli.batch",
    "replay": "minimsg.cli.replay",
    "bench": "minimsg.cli.bench",
    "conform": "minimsg.cli.conform",
    "notebook": "minimsg.cli.notebook",
}


class Refused(click.ClickException):
    """One of our errors, shown as one paragraph without a traceback."""

    exit_code = 2


class EngineFailed(click.ClickException):
    """The engine gave up: not the user's doing."""

    exit_code = 70


class Verbs(click.Group):
    """A group whose commands are the modules of `VERBS`, each holding a command of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = getattr(import_module(VERBS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is asked for; an unknown one is refused with the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], VERBS, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; our errors become one paragraph, Ctrl-C becomes exit code 130."""
        try:
            with _unwinding():
                return super().invoke(ctx)
        except GenerationFailed as error:
            raise EngineFailed(str(error)) from error
        except DiskFailed as error:
            raise click.ClickException(str(error)) from error
        except MinimsgError as error:
            raise Refused(str(error)) from error
        except (KeyboardInterrupt, click.Abort):
            raise click.exceptions.Exit(130) from None


@contextmanager
def _unwinding() -> Iterator[None]:
    """Let SIGTERM unwind a verb as Ctrl-C does, so that nothing half done is left behind.

    Signals are the main thread's: a verb called in another leaves them as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def main() -> None:
    """Serve a small model over the Messages API, and see how it is done.

    \b
    Examples:
      minimsg serve                      a server on http://127.0.0.1:8080
      minimsg run smollm2 "Why is the sky blue?"
      minimsg batch run requests.jsonl -o results.jsonl
      minimsg doctor                     what this machine can do

    Every setting has an environment name, shown in the help of its command. Shell
    completion: eval "$(_MINIMSG_COMPLETE=bash_source minimsg)", or zsh_source, or
    fish_source.
    """
