"""`millstream init`: start a project from a template or an example."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click

import millstream
from millstream.cli.explain.schema import write_schema
from millstream.cli.messages import print_hint
from millstream.diagnostics.failure import InvalidInput

DEFAULT = "starter"
# Files that a run creates are not part of a project.
_LEFT_BEHIND = (".millstream", "lake", "__pycache__", "spark-warehouse", ".env", ".ipynb_checkpoints")
_GITIGNORE = Path(".gitignore")


def examples_folder() -> Path:
    """Return the folder of the examples: in the installed package, or in the checkout it was installed from."""
    package = Path(millstream.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"


def example_names() -> list[str]:
    """Return the names of all examples, sorted."""
    return sorted(
        folder.name for folder in examples_folder().iterdir() if (folder / "pipeline.yml").is_file()
    )


def copy_example(name: str, into: Path) -> None:
    """Copy an example's files, except for a `.gitignore` if the folder has one.

    Raises `InvalidInput` if the name is unknown or another file exists already, before anything is copied.
    """
    names = example_names()
    if name not in names:
        raise InvalidInput(f"there is no example '{name}'", f"the examples are {', '.join(names)}")
    example = examples_folder() / name
    files = [
        path.relative_to(example)
        for path in sorted(example.rglob("*"))
        if path.is_file() and not set(path.relative_to(example).parts) & set(_LEFT_BEHIND)
    ]
    missing_lines: list[str] = []
    if _GITIGNORE in files and (into / _GITIGNORE).is_file():
        # A repository usually has one.
        files.remove(_GITIGNORE)
        missing_lines = _list_missing_lines(into / _GITIGNORE, example / _GITIGNORE)
    if existing := next(filter(None, (_find_existing(into / file) for file in files)), None):
        raise InvalidInput(f"{existing} exists already, and init changes no file", "choose another folder")
    for file in files:
        (into / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(example / file, into / file)
    if missing_lines:
        print_hint(f"{into / _GITIGNORE} is not changed; add to it: {', '.join(missing_lines)}")


def _find_existing(path: Path) -> Path | None:
    """Return what prevents a file from being created: the path itself, or a file in the place of a folder."""
    if path.exists() or path.is_symlink():
        return path
    return next((parent for parent in path.parents if parent.is_file()), None)


def _list_missing_lines(file: Path, example: Path) -> list[str]:
    """Return the lines that the example's file has and the file lacks."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in example.read_text(encoding="utf-8").splitlines() if line not in lines]


def name_project(folder: Path, example: str) -> None:
    """Give the copied pipeline and its README the name of the folder, if that can be a name."""
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        return
    for file, line, renamed in (
        ("pipeline.yml", f"name: {example}", f"name: {name}"),
        ("README.md", f"# {example}", f"# {name}"),
    ):
        path = folder / file
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            pattern = rf"^{re.escape(line)}$"
            path.write_text(re.sub(pattern, renamed, text, count=1, flags=re.MULTILINE), encoding="utf-8")


@click.command("init", short_help="Start a project from an example, a topic or files.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--from", "name", metavar="EXAMPLE", help=f"Example to copy. [default: {DEFAULT}]")
@click.option(
    "--from-topic", "topic", metavar="TOPIC", help="Derive the spec from the records of this Kafka topic."
)
@click.option(
    "--servers",
    metavar="HOST:PORT",
    help="Broker of --from-topic. [default: $KAFKA, or localhost:9092]",
)
@click.option(
    "--security",
    multiple=True,
    metavar="NAME=VALUE",
    help="Login setting for the broker of --from-topic, such as 'password=${KAFKA_PASSWORD}'; can be "
    "repeated.",
)
@click.option(
    "--avro-schema",
    "schema",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Avro schema of the topic's values, for --from-topic.",
)
@click.option(
    "--from-files", "pattern", metavar="GLOB", help="Derive the spec from these JSON, CSV or Parquet files."
)
@click.option("--list", "listed", is_flag=True, help="List the examples.")
def command(
    folder: Path,
    name: str | None,
    topic: str | None,
    servers: str | None,
    security: tuple[str, ...],
    schema: Path | None,
    pattern: str | None,
    *,
    listed: bool,
) -> None:
    """Create a project in FOLDER that is ready to run: pipeline.yml, its views and data, and a schema for editors.

    With --from-topic or --from-files, read up to 1,000 records and derive the columns, types, event time and
    watermark of pipeline.yml from them. Existing files are not changed. If the broker requires a login, pass
    the login as variables in single quotes, so that pipeline.yml contains no password: --security
    'username=${KAFKA_USER}' --security 'password=${KAFKA_PASSWORD}'.
    """
    if listed:
        for example in example_names():
            click.echo(example)
        return
    if sum(option is not None for option in (name, topic, pattern)) > 1:
        raise InvalidInput("--from, --from-topic and --from-files cannot be combined", "choose one of them")
    for option, is_given in {
        "--servers": servers is not None,
        "--security": bool(security),
        "--avro-schema": schema is not None,
    }.items():
        if is_given and topic is None:
            raise InvalidInput(f"{option} needs --from-topic", "name the topic with --from-topic")
    change_folder = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    if topic is not None or pattern is not None:
        from millstream.cli.inferred_project import write_files_project, write_topic_project

        if topic is not None:
            write_topic_project(folder, topic, servers, security, schema)
        else:
            write_files_project(folder, pattern or "")
        print_hint(f"next: {change_folder}millstream dev")
        return
    copy_example(name or DEFAULT, folder)
    name_project(folder, name or DEFAULT)
    write_schema(folder)
    print_hint(f"{folder / 'pipeline.yml'} is ready; next: {change_folder}millstream check")
