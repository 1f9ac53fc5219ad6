"""`millstream config`: print the spec with every default filled in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import open_project, project_options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("config")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(file: Path | None, overrides: tuple[str, ...], env_file: Path | None, as_json: bool) -> None:
    """Print the spec with variables replaced and every default filled in.

    Secrets are hidden. The output is itself a spec with the same meaning.
    """
    from millstream.pipeline.export.dump import resolve_spec

    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    data = resolve_spec(pipeline)
    click.echo(json.dumps(data, indent=2, ensure_ascii=False) if as_json else _yaml(data), nl=as_json)


def _yaml(data: Any) -> str:
    """Format the data as YAML that the loader can read, with multi-line texts as blocks."""
    import yaml

    from millstream.pipeline.load.yaml_scalars import resolve_scalar

    class Dumper(yaml.SafeDumper):
        """A dumper that quotes by the rules of YAML 1.2."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None if isinstance(resolve_scalar(value), str) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110))
