"""Options that every command takes: how much is printed to stderr, and whether in colour."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.snippet import escape_lines
from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.failure import MillstreamError


@dataclass
class _Settings:
    quiet: bool = False
    verbose: bool = False


_settings = _Settings()


@contextmanager
def fresh_settings() -> Iterator[None]:
    """Restore the settings, and the variable for colours, after a command."""
    color = os.environ.get("NO_COLOR")
    _settings.quiet = _settings.verbose = False
    try:
        yield
    finally:
        _settings.quiet = _settings.verbose = False
        if color is None:
            os.environ.pop("NO_COLOR", None)


def is_quiet() -> bool:
    """Return whether progress and hints are omitted: `-q`."""
    return _settings.quiet


def is_verbose() -> bool:
    """Return whether the causes of an error are printed: `-v`."""
    return _settings.verbose


def print_hint(text: str) -> None:
    """Print what to do next, or the current step, to stderr, unless the command is quiet."""
    if not is_quiet():
        click.echo(text, err=True)


def format_failure(failure: MillstreamError) -> str:
    """Return a failure and its fix, one line each, without secrets and without control characters."""
    text = f"millstream: {failure.what}" + (f"\n  fix: {failure.fix}" if failure.fix else "")
    # A failure may contain the value of a record, which must not control the terminal.
    return escape_lines(redact(text))


@contextmanager
def require_answer(fix: str) -> Iterator[None]:
    """Raise `InvalidInput` if a question inside cannot be answered, because standard input has ended."""
    try:
        yield
    except click.Abort as error:
        # Ctrl-C has the same error of click.
        if not isinstance(error.__context__, EOFError):
            raise
        raise InvalidInput("the question cannot be answered: standard input has ended", fix) from error


def confirm(question: str) -> bool:
    """Ask a question. Raises `InvalidInput` if standard input has ended."""
    with require_answer("to answer every question with yes, add --yes"):
        return click.confirm(question, err=True)


def confirm_deletion(question: str) -> None:
    """Ask whether to delete something. End the command with 1 if not."""
    if not confirm(question):
        click.echo("nothing was deleted", err=True)
        raise click.exceptions.Exit(1)


def add_message_options(command: click.Command, *, hidden: bool = True) -> None:
    """Let a command, and those inside it, take `-q`, `-v` and `--no-color`; only `millstream --help` lists them."""
    taken = {name for parameter in command.params for name in parameter.opts}
    for option in _options(hidden=hidden):
        names = [name for name in option.opts if name not in taken]
        if len(names) == len(option.opts):
            command.params.append(option)
    if hidden and isinstance(command, click.Group):
        for inner in command.commands.values():
            add_message_options(inner)


def _note_verbose(_: click.Context, __: click.Parameter, value: bool) -> bool:
    """Print the causes of an error from now on."""
    _settings.verbose = _settings.verbose or value
    return value


verbose_run = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    callback=_note_verbose,
    help="Print the Spark settings that were chosen, and why, and the causes of an error.",
)
"""Option `-v` of a command that runs queries, in place of the one that every command takes."""


def _options(*, hidden: bool) -> list[click.Option]:
    def quiet(_: click.Context, __: click.Parameter, value: bool) -> None:
        _settings.quiet = _settings.quiet or value

    def colorless(_: click.Context, __: click.Parameter, value: bool) -> None:
        if value:
            os.environ["NO_COLOR"] = "1"

    return [
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            callback=quiet,
            help="Print results and errors only: no progress, no hints.",
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            callback=_note_verbose,
            help="Print the causes of an error as well.",
        ),
        click.Option(
            ["--no-color"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            callback=colorless,
            help="Print no colours. NO_COLOR does the same.",
        ),
    ]
