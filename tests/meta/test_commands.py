"""A command line that a page shows is one that the program takes."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from millstream.cli.main import COMMANDS, command_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# `millstream run --for 60s` in running text, and lines of a console block.
INLINE = re.compile(r"`millstream ([^`\n]+)`")
FENCE = re.compile(r"^```(?:console|sh|bash|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*millstream ([^\n#|>]+)", re.MULTILINE)


def list_commands(page: Path) -> list[str]:
    """What stands after `millstream` in the command lines of a page."""
    text = page.read_text(encoding="utf-8")
    return INLINE.findall(text) + [line for block in FENCE.findall(text) for line in LINE.findall(block)]


def find_mistake(line: str) -> str | None:
    """What is wrong with a command line: no such command, or no such option of it."""
    words = shlex.split(line.replace("…", ""), comments=True)
    if not words or words[0].startswith("-"):
        return None
    name = words.pop(0)
    if name not in COMMANDS or importlib.util.find_spec(command_module(name)) is None:
        return f"there is no command '{name}'"
    command: click.Command = importlib.import_module(command_module(name)).command
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in words:
        if word == "--" or word.endswith(".py"):
            # What follows is a script's own.
            break
        option = word.partition("=")[0]
        if re.match(r"--?[A-Za-z]", option) and option not in known | {"-h", "--help"}:
            return f"'{name}' has no option '{option}'"
    return None


def test_every_command_line_of_a_page_is_one_that_the_program_takes(root: Path, prose: list[Path]) -> None:
    paths = [page for page in prose if "tests" not in page.relative_to(root).parts]
    actual = {
        f"{page.relative_to(root)}: millstream {line}": item
        for page in paths
        for line in list_commands(page)
        if (item := find_mistake(line.strip())) is not None
    }

    assert actual == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_help_has_its_file(name: str) -> None:
    assert importlib.util.find_spec(command_module(name)) is not None


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_lists_every_command(root: Path, name: str) -> None:
    page = root / "docs/reference/command-line.md"
    assert f"| `{name}` |" in page.read_text(encoding="utf-8")


def test_the_reference_lists_every_environment_variable(root: Path) -> None:
    read = {
        name
        for file in (root / "src").rglob("*.py")
        for name in re.findall(r"[\"'](MILLSTREAM_[A-Z_]+)[\"']", file.read_text(encoding="utf-8"))
    }
    text = (root / "docs/reference/command-line.md").read_text(encoding="utf-8")

    assert sorted(name for name in read if f"`{name}`" not in text) == []


def test_the_targets_that_pages_name_are_in_the_makefile(root: Path, prose: list[Path]) -> None:
    known = set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(), re.MULTILINE))
    names = {
        name for page in prose for name in re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8"))
    }

    assert sorted(names - known) == []


def list_usages(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of the commands inside it, on a terminal of 80 columns."""
    yield name, command.get_help(click.Context(command, info_name=name, terminal_width=80))
    if isinstance(command, click.Group):
        for inner, item in command.commands.items():
            yield from list_usages(item, f"{name} {inner}")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_a_help_is_cut_off(name: str) -> None:
    command: click.Command = importlib.import_module(command_module(name)).command
    lines = [
        f"{title}: {line.strip()}"
        for title, text in list_usages(command, f"millstream {name}")
        for line in text.splitlines()[1:]
        if line.endswith("...")
    ]

    assert lines == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_usage_line_marks_repeated_arguments_in_one_way(name: str) -> None:
    command: click.Command = importlib.import_module(command_module(name)).command

    assert [title for title, text in list_usages(command, name) if "…" in text.splitlines()[0]] == []
