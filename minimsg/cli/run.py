"""`minimsg run`: one question, or a chat, at the terminal.

The question goes the way of every request (`server/prepare.py`, `server/messages.py`,
the engine thread); only HTTP is left out. Conversation and commands are in `chat.py`.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from minimsg.cli.chat import Conversation, Quit, ReplySettings, read_question
from minimsg.cli.data_dir import data_dir_option
from minimsg.cli.logs import configure
from minimsg.cli.options import options_from
from minimsg.cli.startup import DEFAULT_MODEL, require_engine
from minimsg.config import EngineConfig
from minimsg.errors import DiskFailed, GenerationFailed, RequestError
from minimsg.server.loading import served_name
from minimsg.text.control import escape

if TYPE_CHECKING:
    from minimsg.bench.sample import Sample
    from minimsg.cli.asking import Asker


@click.command()
@click.argument("model", default=DEFAULT_MODEL)
@click.argument("prompt", required=False)
@options_from(ReplySettings)
@click.option("--verbose", is_flag=True, help="Show load time and rates.")
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the record of the last reply, for `minimsg replay`.",
)
@data_dir_option
@options_from(EngineConfig)
def run(
    model: str,
    prompt: str | None,
    reply_settings: ReplySettings,
    verbose: bool,
    trace_file: Path | None,
    data_dir: Path | None,
    engine_config: EngineConfig,
) -> None:
    """Ask MODEL one question, or chat with it.

    PROMPT is the question. What is piped in follows it, or is the question itself; at a
    terminal and without PROMPT a chat begins: /help says what it can do.

    \b
    Examples:
      minimsg run smollm2 "Why is the sky blue?"
      cat question.txt | minimsg run
      cat notes.txt | minimsg run smollm2 "Summarise this:"
      minimsg run --verbose --temperature 0
      minimsg run tiny "Hello" --trace record.json
    """
    require_engine()
    _check_model_is_no_question(model)
    question = read_prompt(prompt)
    conversation = Conversation(served_name(model), reply_settings)
    conversation.check()
    configure("info" if verbose else "warning")
    started = perf_counter()
    from minimsg.cli.asking import Asker  # torch is imported here, and counted

    with Asker.open(model, data_dir, engine_config, is_traced=trace_file is not None) as asker:
        if verbose:
            click.echo(f"loaded in {perf_counter() - started:.2f} s", err=True)
        try:
            if question is not None:
                _ask(asker, conversation, question, verbose)
            else:
                _chat(asker, conversation, verbose)
        finally:
            if trace_file is not None:
                _write_trace(asker, trace_file)


def _write_trace(asker: Asker, file: Path) -> None:
    """The record of the latest reply, also of one that Ctrl-C ended. Raises DiskFailed."""
    from minimsg.trace import to_json

    trace = asker.trace()
    if trace is None:
        return
    try:
        file.write_bytes(to_json(trace))
    except OSError as error:
        raise DiskFailed(f"{file}: {error.strerror}; the record is not kept") from error


def _check_model_is_no_question(model: str) -> None:
    """Raise UsageError where the only argument is the question: no model's name has a space."""
    if " " in model.strip() and not Path(model).exists():
        raise click.UsageError(
            f"the first argument is the model, the question comes second: "
            f"minimsg run {DEFAULT_MODEL} {shlex.quote(model)}"
        )


def read_prompt(prompt: str | None) -> str | None:
    """The prompt and what is piped in; None for a chat. Raises UsageError if both are empty."""
    is_terminal = sys.stdin.isatty()
    if prompt is None and is_terminal:
        return None
    piped = "" if is_terminal else sys.stdin.buffer.read().decode(errors="replace")
    question = "\n\n".join(part for part in (prompt, piped) if part and not part.isspace())
    if not question:
        raise click.UsageError("the question is empty: give it as PROMPT or pipe it in")
    return question


def _chat(asker: Asker, conversation: Conversation, verbose: bool) -> None:
    """Questions and commands until the input ends."""
    _enable_line_editing()
    click.echo(f"{conversation.model}; /help says what can be done here")
    while (line := _next_line()) is not None:
        try:
            if line.startswith("/"):
                click.echo(conversation.command(line))
            elif line:
                _ask(asker, conversation, line, verbose)
        except Quit:
            return
        except KeyboardInterrupt:
            click.echo("(stopped)", err=True)
        except (RequestError, GenerationFailed) as error:
            click.echo(error, err=True)


def _next_line() -> str | None:
    """What is typed next; None at the end of the input."""
    while True:
        try:
            return read_question(input)
        except EOFError:
            return None
        except KeyboardInterrupt:
            click.echo("\n(/quit or Ctrl-D leaves)", err=True)


def _ask(asker: Asker, conversation: Conversation, question: str, verbose: bool) -> None:
    """Print the reply as it comes. What was said before Ctrl-C is kept. Raises RequestError."""
    said: list[str] = []

    def show(text: str) -> None:
        said.append(text)
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()

    try:
        sample = asker.ask(conversation.request(question), show)
    finally:
        click.echo()
        conversation.add(question, "".join(said))
    if verbose:
        click.echo(rates(sample), err=True)


def rates(sample: Sample) -> str:
    """Prompt and reply in tokens and tokens per second."""
    prompt = f"prompt: {sample.input_tokens} tokens, {sample.input_tokens / sample.ttft_s:.1f}/s"
    pace = f", {1 / sample.inter_token_s:.1f}/s" if sample.inter_token_s else ""
    return f"{prompt}\nreply: {sample.output_tokens} tokens{pace}"


def printable(text: str) -> str:
    """Without control characters: a model must not drive the terminal."""
    return "".join(char if char in "\n\t" else escape(char) for char in text)


def _enable_line_editing() -> None:
    """Arrow keys and history for `input`, where Python has readline."""
    try:
        import readline  # noqa: F401
    except ImportError:
        return
