"""Define the options that all project commands share, and load the spec that they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from millstream.diagnostics.failure import InvalidInput, MillstreamError

if TYPE_CHECKING:
    from millstream.diagnostics.failure import NotReady
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

Command = TypeVar("Command", bound=Callable[..., Any])
SPEC = "pipeline.yml"


def project_options(command: Command) -> Command:
    """Add `-f`, `--set` and `--env-file`, which the command receives as `file`, `overrides` and `env_file`."""
    for option in (
        click.option(
            "--env-file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="File with values for the variables of the spec, one NAME=value on each line.",
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set one value of the spec, as in queries.funnel.output_mode=update; can be repeated.",
        ),
        click.option(
            "-f",
            "--file",
            type=click.Path(path_type=Path),
            help=f"The spec, or its folder. [default: {SPEC} in this folder or the nearest one above]",
        ),
    ):
        command = option(command)
    return command


def find_spec(spec_path: Path | None) -> Path:
    """Return the path of the spec: the given file, the one in the given folder, or the nearest one upward."""
    if spec_path is not None:
        path = spec_path / SPEC if spec_path.is_dir() else spec_path
        if not path.is_file():
            raise InvalidInput(
                f"there is no file {path}", "name the spec with -f, or create one with 'millstream init'"
            )
        return path
    working_folder = Path.cwd()
    for folder in (working_folder, *working_folder.parents):
        if (folder / SPEC).is_file():
            return folder / SPEC
    raise InvalidInput(
        f"there is no {SPEC} in {working_folder} or in a folder above it",
        "name the spec with -f, or create one with 'millstream init'",
    )


def load_project(
    file: Path | None, overrides: Sequence[str] = (), env_file: Path | None = None
) -> LoadedSpec:
    """Find and load a spec, even if it has errors. Raises `InvalidInput` if there is none."""
    # Imported here because `millstream --help` needs neither the model nor the YAML reader.
    from millstream.checkpoint.remote.file_system import set_opener
    from millstream.cli.cluster import use_buckets
    from millstream.cli.variables import spec_environment
    from millstream.pipeline.spec_file import load_spec

    path = find_spec(file)
    loaded = load_spec(path, spec_environment(path.parent, env_file), overrides)
    if loaded.pipeline is None:
        return loaded
    pipeline = use_buckets(loaded.pipeline)
    set_opener(partial(_open_reading_session, pipeline))
    return replace(loaded, pipeline=pipeline)


def open_project(
    file: Path | None, overrides: Sequence[str] = (), env_file: Path | None = None
) -> LoadedSpec:
    """Find and load a spec that has no errors.

    On errors, print them to stderr and end the command: with 2 if the file cannot be read, else with 1.
    """
    # Imported here like the model, for which `--help` does not wait.
    from millstream.cli.cluster import use_cluster

    loaded = load_project(file, overrides, env_file)
    exit_on_errors(loaded.findings, loaded.texts)
    return use_cluster(loaded)


def _open_reading_session(pipeline: Pipeline) -> None:
    """Start Spark on this machine for a command that reads a remote checkpoint before it needs Spark itself."""
    # Imported here because no checkpoint on this machine needs it.
    from millstream.cli.cluster import settings_without_cluster
    from millstream.spark.session import open_session

    log = pipeline.folder / ".millstream" / "logs" / "checkpoints.log"
    open_session(f"{pipeline.name}-checkpoints", settings_without_cluster(pipeline), log=log)


def complete_query(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of queries that begin with the incomplete word, for completion in a shell."""
    try:
        pipeline = load_project(None).pipeline
    except (MillstreamError, OSError):
        return []
    return [name for name in pipeline.queries if name.startswith(incomplete)] if pipeline else []


def exit_on_errors(findings: Sequence[Finding], texts: Mapping[str, str]) -> None:
    """Print findings to stderr, and end the command if any of them is an error."""
    if findings:
        print_findings(findings, texts)
    if any(finding.severity == "error" for finding in findings):
        raise click.exceptions.Exit(2 if any(finding.code == "MS001" for finding in findings) else 1)


def exit_with_place(failure: NotReady, loaded: LoadedSpec) -> NoReturn:
    """End the command with an error about a source or sink, printed with its place as `check --connect` prints it."""
    from millstream.diagnostics.failure import Outage, Unreachable
    from millstream.diagnostics.spec_codes import build_finding

    if not failure.path:
        raise failure
    code = "MS560" if isinstance(failure, Unreachable | Outage) else "MS561"
    span = loaded.places.key(*failure.path)
    print_findings([build_finding(code, failure.what, span, fix=failure.fix)], loaded.texts)
    raise click.exceptions.Exit(failure.exit_code) from failure


def print_findings(findings: Sequence[Finding], texts: Mapping[str, str]) -> None:
    """Print findings as text to stderr."""
    from millstream.diagnostics.render import render
    from millstream.spec.secrets.redaction import redact_values

    rendered = redact_values(render(findings, texts, "text", color=use_colors(sys.stderr)))
    click.echo(rendered, err=True, nl=False)


def use_colors(stream: Any) -> bool:
    """Return whether to write colours: only to a terminal, and only if NO_COLOR is not set."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR")
