"""Write a project from records of a topic or of files, for `init --from-topic` and `--from-files`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from millstream.cli.explain.schema import write_schema
from millstream.cli.messages import print_hint
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.inference.project_text import describe_time, list_columns, write_spec
from millstream.pipeline.inference.read_records import Records, read_files, read_topic

if TYPE_CHECKING:
    from pathlib import Path

SPEC = "pipeline.yml"
# Messages that `millstream dev` shows rows of. They are real data, so there are few.
SAMPLE = 100
# The variable that `millstream up` prints, and that the examples read.
_BROKER = "KAFKA"


def write_project(folder: Path, topic: str | None, servers: str | None, pattern: str | None) -> None:
    """Read records, and write a spec, for a topic also a sample, and the JSON schema for editors.

    Raises `InvalidInput` if a file exists that would be written.
    """
    _refuse_existing(folder / SPEC)
    if topic is not None:
        servers = servers or _default_servers()
        print_hint(f"reading topic '{topic}' at {servers}")
        records = read_topic(topic, servers)
    else:
        records = read_files(pattern or "", folder)
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
