"""The page of the commands: the help of each."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

import click

from generators.layout import MADE, joined
from millstream.cli.main import COMMANDS, command_module

if TYPE_CHECKING:
    from collections.abc import Iterator

# A terminal of this many columns is what the help texts are laid out for.
WIDTH = 100


def cli_page() -> str:
    """The help of every command that there is."""
    intro = (
        "This page has the help of every command, as `--help` prints it. [Command line](command-line.md) lists the "
        "commands in one table, with exit codes, files and environment variables."
    )
    parts = ["# Options of the commands", MADE, intro]
    for name, what in COMMANDS.items():
        if importlib.util.find_spec(command_module(name)) is not None:
            command: click.Command = importlib.import_module(command_module(name)).command
            parts += [f"## millstream {name}", what, *helps(command, f"millstream {name}")]
    return joined(parts)


def helps(command: click.Command, name: str) -> Iterator[str]:
    """The help of a command, then of the commands inside it."""
    context = click.Context(
        command,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    yield f"```text\n{command.get_help(context).rstrip()}\n```"
    if isinstance(command, click.Group):
        for inner in command.commands:
            yield from (f"### {name} {inner}", *helps(command.commands[inner], f"{name} {inner}"))
