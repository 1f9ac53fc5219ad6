"""`millstream schema`: the JSON schema of a spec, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from millstream.cli.project import find_spec

PLACE = Path(".millstream", "schema.json")
TESTS = Path(".millstream", "tests.schema.json")


@click.command("schema")
@click.option(
    "-f", "--file", type=click.Path(path_type=Path), help="The spec, or its folder, to write beside."
)
@click.option("--write", is_flag=True, help=f"Write {PLACE} beside the spec instead of printing.")
@click.option("--tests", is_flag=True, help=f"The schema of test files, in {TESTS}.")
def command(file: Path | None, *, write: bool, tests: bool) -> None:
    """Print the JSON schema of a spec, or of test files.

    An editor with YAML support uses it when the spec begins with
    '# yaml-language-server: $schema=.millstream/schema.json'.
    """
    if not write:
        click.echo(_tests_text() if tests else _text(), nl=False)
        return
    folder = find_spec(file).parent
    path = _put(folder / TESTS, _tests_text()) if tests else write_schema(folder)
    user, line = ("a test file", f"../{TESTS}") if tests else ("a spec", str(PLACE))
    click.echo(
        f"wrote {path}; the first line of {user} that uses it: # yaml-language-server: $schema={line}",
        err=True,
    )


def write_schema(folder: Path) -> Path:
    """Write the schema into a project's folder, where the first line of its spec points; gives the file."""
    return _put(folder / PLACE, _text())


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _text() -> str:
    from millstream.pipeline.jsonschema import json_schema

    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _tests_text() -> str:
    from millstream.pipeline.jsonschema import schema_of
    from millstream.testing.form import SuiteForm

    schema = schema_of(SuiteForm, "A file of Millstream tests")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
