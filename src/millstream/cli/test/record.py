"""`millstream test --record`: print a test with the newest records of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.cluster import settings_without_cluster
from millstream.cli.messages import print_hint
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import open_project
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def record_test(
    paths: Sequence[Path], word: str, row_count: int, query: str | None, env_file: Path | None
) -> int:
    """Connect to the source or topic `word`, and print a test file with its newest records to stdout."""
    from millstream.spark.session import open_session, stop_session
    from millstream.testing.authoring import record

    if len(paths) > 1:
        raise InvalidInput("--record needs exactly one pipeline", "name one spec or folder, or none")
    pipeline = open_project(paths[0] if paths else None, (), env_file).pipeline
    assert pipeline is not None
    source = record.find_source(pipeline, word)
    query_name = record.choose_query(pipeline, source, query)
    entry = pipeline.sources[source]
    steps = ProgressReporter()
    steps.show("starting Spark")
    spark = open_session(f"{pipeline.name}-record", settings_without_cluster(pipeline))
    try:
        steps.show(f"reading {entry.source.describe()}")
        rows = record.read_newest_rows(spark, entry, source, row_count)
    finally:
        steps.clear()
        stop_session(spark)
    zone = pipeline.session_zone
    items = [record.to_feed_item(entry, row, zone) for row in rows]
    name = f"the newest {len(items)} records of {source}"
    click.echo(record.format_test(name, query_name, source, items), nl=False)
    print_hint(
        "next: save this in a file under tests/, then fill in the results: millstream test FILE --update"
    )
    return 0
