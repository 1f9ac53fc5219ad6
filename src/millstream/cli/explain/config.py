"""`millstream config`: print the spec with every default filled in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import open_project, project_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.source import Source
    from millstream.pipeline.load.places import ValuePositions


@click.command("config")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(file: Path | None, overrides: tuple[str, ...], env_file: Path | None, as_json: bool) -> None:
    """Print the spec with variables replaced and every default filled in.

    Values that the spec does not set are marked with the comment '# default'. Secrets are hidden. The output
    is a valid spec and, apart from the secrets, equivalent to the original.
    """
    from millstream.pipeline.export.dump import resolve_spec

    loaded = open_project(file, overrides, env_file)
    assert loaded.pipeline is not None
    data = resolve_spec(loaded.pipeline)
    if as_json:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    click.echo(_mark_defaults(_yaml(data), loaded.places, overrides), nl=False)


def _mark_defaults(text: str, places: ValuePositions, overrides: tuple[str, ...]) -> str:
    """Add a comment to each value of one line that neither the spec nor an override sets."""
    import yaml

    if places.document is None:
        # A spec in Python has no positions of its values.
        return text
    lines = text.splitlines()
    set_paths = [tuple(override.partition("=")[0].split(".")) for override in overrides]
    for path, node in _leaves(yaml.compose(text), ()):
        is_set = any(tuple(map(str, path))[: len(prefix)] == prefix for prefix in set_paths)
        if node.start_mark.line == node.end_mark.line and not is_set and _is_default(places, path):
            lines[node.start_mark.line] += "  # default"
    return "".join(f"{line}\n" for line in lines)


def _leaves(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each scalar and each empty collection with its path."""
    if node.value and isinstance(node.value, list):
        for number, item in enumerate(node.value):
            key, inner = (item[0].value, item[1]) if isinstance(item, tuple) else (number, item)
            yield from _leaves(inner, (*path, key))
    else:
        yield path, node


def _is_default(places: ValuePositions, path: tuple[str | int, ...]) -> bool:
    """Return whether the spec has no value at the path. A kind given as one value sets its main setting."""
    from millstream.connectors.registry import sinks, sources

    if places.has(*path):
        return False
    for length in range(len(path) - 1, 0, -1):
        if places.has(*path[:length]):
            kinds: dict[str, type[Source] | type[Sink]] = {**sources(), **sinks()}
            kind = kinds.get(str(path[length - 1]))
            is_short = places.scalar(*path[:length]) is not None
            return path[length] != kind.main if is_short and kind is not None else not is_short
    return True


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
