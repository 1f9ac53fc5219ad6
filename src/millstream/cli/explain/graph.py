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
    help="Output format; mermaid for Markdown pages, dot for Graphviz.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
def command(
    file: Path | None, overrides: Sequence[str], env_file: Path | None, *, form: str, as_json: bool
) -> None:
    """Draw the graph of the pipeline, from the sources through views and queries to the sinks."""
    from millstream.pipeline.export import graph_export
    from millstream.pipeline.graph import PipelineGraph

    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    draw = {
        "text": graph_export.graph_as_text,
        "mermaid": graph_export.graph_as_mermaid,
        "dot": graph_export.graph_as_dot,
        "json": graph_export.graph_as_json,
    }
    click.echo(draw["json" if as_json else form](PipelineGraph.of(pipeline)), nl=False)
