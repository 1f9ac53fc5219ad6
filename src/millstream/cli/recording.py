"""`millstream test --record`: print a test made of the newest records of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.project import open_project
from millstream.cli.steps import Steps
from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def record_test(paths: Sequence[Path], word: str, many: int, query: str | None, env_file: Path | None) -> int:
    """Print a test file to stdout; `word` is a source or a topic. Connects to the source."""
    from millstream.runtime.session import open_session, stop
    from millstream.testing import record

    if len(paths) > 1:
        raise WrongUse("a test is recorded of one pipeline", "name one spec or folder, or none")
    pipeline = open_project(paths[0] if paths else None, (), env_file).pipeline
    assert pipeline is not None
    source = record.named(pipeline, word)
    played = record.played_by(pipeline, source, query)
    entry = pipeline.sources[source]
    steps = Steps()
    steps.tell("starting Spark")
    spark = open_session(f"{pipeline.name}-record", dict(pipeline.spark))
    try:
        steps.tell(f"reading {entry.source.describe()}")
        rows = record.newest(spark, entry, source, many)
    finally:
        steps.done()
        stop(spark)
    items = [record.fed(entry, row) for row in rows]
    name = f"the newest {len(items)} records of {source}"
    click.echo(record.written(name, played, source, items), nl=False)
    click.echo(
        "next: put this into a file below tests/, then millstream test FILE --update fills in what came",
        err=True,
    )
    return 0
