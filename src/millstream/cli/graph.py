"""`millstream graph`: draw sources, views, queries and sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.project import open_project, project_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@click.command("graph", short_help="Draw sources, views, queries and sinks.")
@project_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "json"]),
    default="text",
    help="How it is drawn; mermaid for Markdown pages, dot for Graphviz.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
def command(
    file: Path | None, overrides: Sequence[str], env_file: Path | None, *, form: str, as_json: bool
) -> None:
    """Draw who reads whom, from the sources to the sinks."""
    from millstream.pipeline import drawing
    from millstream.pipeline.graph import Graph

    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    draw = {"text": drawing.text, "mermaid": drawing.mermaid, "dot": drawing.dot, "json": drawing.as_json}
    click.echo(draw["json" if as_json else form](Graph.of(pipeline)), nl=False)
