"""The options that every command about a project takes, and how they become a loaded spec."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.load import Loaded

Command = TypeVar("Command", bound=Callable[..., Any])
SPEC = "pipeline.yml"


def project_options(command: Command) -> Command:
    """Add `-f`, `--set` and `--env-file`; the command gets `file`, `overrides` and `env_file`."""
    for option in (
        click.option(
            "--env-file", type=click.Path(path_type=Path, dir_okay=False), help="File of NAME=value lines."
        ),
        click.option(
            "--set", "overrides", multiple=True, metavar="A.B=C", help="Replace one value of the spec."
        ),
        click.option(
            "-f",
            "--file",
            type=click.Path(path_type=Path),
            help=f"The spec, or its folder. [default: {SPEC} here or in a folder above]",
        ),
    ):
        command = option(command)
    return command


def find_spec(given: Path | None) -> Path:
    """The spec that is meant: the given file, the one in the given folder, or the nearest one upward."""
    if given is not None:
        path = given / SPEC if given.is_dir() else given
        if not path.is_file():
            raise WrongUse(
                f"there is no file {path}", "name the spec with -f, or make one with 'millstream init'"
            )
        return path
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / SPEC).is_file():
            return folder / SPEC
    raise WrongUse(
        f"there is no {SPEC} in {here} or in a folder above it",
        "name the spec with -f, or make one with 'millstream init'",
    )


def load_project(file: Path | None, overrides: Sequence[str] = (), env_file: Path | None = None) -> Loaded:
    """Find and load a spec, whatever is wrong with it. Raises `WrongUse` when there is none."""
    # Here and not above: `millstream --help` needs neither the model nor the YAML reader.
    from millstream.cli.environment import environment
    from millstream.pipeline.load import load

    path = find_spec(file)
    return load(path, environment(path.parent, env_file), overrides)


def open_project(file: Path | None, overrides: Sequence[str] = (), env_file: Path | None = None) -> Loaded:
    """Find and load a spec that has no errors.

    Errors are printed to stderr and the command ends: with 2 when the file cannot be read, else with 1.
    """
    loaded = load_project(file, overrides, env_file)
    refuse(loaded.findings, loaded.texts)
    return loaded


def refuse(findings: Sequence[Finding], texts: Mapping[str, str]) -> None:
    """Print findings to stderr, and end the command if there is an error among them."""
    if findings:
        print_findings(findings, texts)
    if any(found.severity == "error" for found in findings):
        raise click.exceptions.Exit(2 if any(found.code == "MS001" for found in findings) else 1)


def print_findings(findings: Sequence[Finding], texts: Mapping[str, str]) -> None:
    """Findings as text, to stderr."""
    from millstream.diagnostics.render import render

    click.echo(render(findings, texts, "text", color=colored(sys.stderr)), err=True, nl=False)


def colored(stream: Any) -> bool:
    """May colour be written there? Only to a terminal, and not when NO_COLOR is set."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR")
