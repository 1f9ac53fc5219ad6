"""`millstream config`: the spec as it is understood."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import open_project, project_options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("config")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path | None, overrides: tuple[str, ...], env_file: Path | None, as_json: bool) -> None:
    """Print the spec with variables replaced and every default filled in.

    Secrets are hidden. What is printed is a spec again, and means the same.
    """
    from millstream.pipeline.resolved import resolved

    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    data = resolved(pipeline)
    click.echo(json.dumps(data, indent=2, ensure_ascii=False) if as_json else _yaml(data), nl=as_json)


def _yaml(data: Any) -> str:
    """The data as YAML that the loader reads back: texts of several lines as blocks."""
    import yaml

    from millstream.pipeline.scalar import resolve

    class Dumper(yaml.SafeDumper):
        """Quotes by the rules of YAML 1.2."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None if isinstance(resolve(value), str) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110))
