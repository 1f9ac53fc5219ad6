"""Write a project from records of a topic or of files, for `init --from-topic` and `--from-files`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from millstream.cli.explain.schema import write_schema
from millstream.cli.messages import print_hint
from millstream.cli.variables import spec_environment
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.inference.avro_records import load_avro_schema
from millstream.pipeline.inference.project_text import describe_time, list_columns, write_spec
from millstream.pipeline.inference.read_records import Records, Topic, read_files, read_topic
from millstream.pipeline.inference.topic_login import read_security

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SPEC = "pipeline.yml"
# Messages that `millstream dev` shows rows of. They are real data, so there are few.
SAMPLE = 100
# The variable that `millstream up` prints, and that the examples read.
_BROKER = "KAFKA"


def write_topic_project(
    folder: Path, topic: str, servers: str | None, security: Sequence[str], schema: Path | None
) -> None:
    """Read the newest records of a topic, and write a project for it.

    `security` has settings as `NAME=VALUE`; `schema` is the file of an Avro schema, which is copied into the folder
    if it lies elsewhere.

    Raises `InvalidInput` if a file exists that would be written.
    """
    _refuse_existing(folder / SPEC)
    login = read_security(security)
    avro = load_avro_schema(schema) if schema is not None else None
    servers = servers or _default_servers()
    copy = None
    if schema is not None and not schema.resolve().is_relative_to(folder.resolve()):
        copy = folder / schema.name
        _refuse_existing(copy)
    place = "" if schema is None else str((copy or schema).resolve().relative_to(folder.resolve()))
    print_hint(f"reading topic '{topic}' at {servers}")
    records = read_topic(Topic(topic, servers, login, avro, place), spec_environment(folder, None), folder)
    _write_project(folder, records)
    if schema is not None and copy is not None:
        copy.write_bytes(schema.read_bytes())


def write_files_project(folder: Path, pattern: str) -> None:
    """Read records of files, and write a project for them. Raises `InvalidInput` if there is a spec already."""
    _refuse_existing(folder / SPEC)
    _write_project(folder, read_files(pattern, folder))


def _write_project(folder: Path, records: Records) -> None:
    """Write a spec, for a topic also a sample, and the JSON schema for editors."""
    sample = folder / "samples" / f"{records.name}.jsonl"
    if records.lines:
        _refuse_existing(sample)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SPEC).write_text(write_spec(records, _project_name(folder, records)), encoding="utf-8")
    if records.lines:
        sample.parent.mkdir(exist_ok=True)
        sample.write_text("".join(f"{line}\n" for line in records.lines[-SAMPLE:]), encoding="utf-8")
        print_hint(
            f"{sample} has {min(SAMPLE, len(records.lines))} real messages: look at them before you commit it"
        )
    write_schema(folder)
    columns = list_columns(records)
    click.echo(
        f"{folder / SPEC}: {len(columns)} columns and {describe_time(records)}, "
        f"from {len(records.rows):,} records of {records.subject}"
    )


def _refuse_existing(file: Path) -> None:
    if file.exists():
        raise InvalidInput(f"{file} exists already, and init changes no file", "choose another folder")


def _default_servers() -> str:
    """Return the broker that the environment names, or the usual address."""
    return os.environ.get(_BROKER) or "localhost:9092"


def _project_name(folder: Path, records: Records) -> str:
    name = folder.resolve().name
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) else records.name
