"""`millstream schema`: print the JSON schema of a spec, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from millstream.checkpoint.private_folder import make_private
from millstream.cli.project import find_spec

PLACE = Path(".millstream", "schema.json")
TESTS = Path(".millstream", "tests.schema.json")


@click.command("schema")
@click.option("-f", "--file", type=click.Path(path_type=Path), help="With --write: the spec, or its folder.")
@click.option("--write", is_flag=True, help=f"Write {PLACE} next to the spec instead of printing.")
@click.option("--tests", is_flag=True, help=f"Use the schema of test files; --write writes {TESTS}.")
def command(file: Path | None, *, write: bool, tests: bool) -> None:
    """Print the JSON schema of a spec, or of test files.

    An editor with YAML support uses the schema for completion if the spec begins with '#
    yaml-language-server: $schema=.millstream/schema.json'.
    """
    if not write:
        click.echo(_tests_text() if tests else _text(), nl=False)
        return
    folder = find_spec(file).parent
    path = _write(folder / TESTS, _tests_text()) if tests else write_schema(folder)
    user, line = ("a test file", f"../{TESTS}") if tests else ("a spec", str(PLACE))
    click.echo(
        f"wrote {path}; to use it, begin {user} with: # yaml-language-server: $schema={line}",
        err=True,
    )


def write_schema(folder: Path) -> Path:
    """Write the schema to the place in the project that the first line of its spec names, and return the path."""
    return _write(folder / PLACE, _text())


def _write(path: Path, text: str) -> Path:
    make_private(path.parent)
    path.write_text(text, encoding="utf-8")
    return path


def _text() -> str:
    from millstream.pipeline.export.json_schema import json_schema

    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _tests_text() -> str:
    from millstream.pipeline.export.json_schema import schema_of
    from millstream.testing.files.schema import SuiteForm

    schema = schema_of(SuiteForm, "A file of Millstream tests")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
