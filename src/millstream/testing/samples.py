"""Find sample records for the sources of a view, and compute the view over them as a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import MillstreamError
from millstream.frames.preview import NEWEST, preview_rows
from millstream.pipeline.model import Format
from millstream.testing.harness.memory_stream import create_static_frame, raw_ddl
from millstream.testing.harness.memory_streams import reduce_pipeline
from millstream.testing.harness.session import open_case_session
from millstream.testing.harness.source_encoder import Feeder
from millstream.testing.model import Fed, Feed, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.testing.model import Case

FOLDER = "samples"
GENERATED = 100
# A sample is for reading; a file of more records than these is cut.
MOST_RECORDS = 10_000


@dataclass(frozen=True)
class Sample:
    """Sample records of one source, in the order of arrival. None means the source itself is read."""

    origin: str
    records: tuple[Fed, ...] | None


NO_SAMPLE = Sample("no sample", ())
# The name of a test, and the rows that it feeds to each source.
TestFeeds = tuple[str, Mapping[str, tuple["Fed", ...]]]


@dataclass(frozen=True)
class Preview:
    """The rows of a view over samples, newest first, and the sample of each source that it reads."""

    columns: list[str]
    rows: list[list[Any]]
    samples: Mapping[str, Sample]


def sample_file(pipeline: Pipeline, source: str) -> Path:
    """Return the path of a source's sample file, which may not exist: one record per line."""
    return pipeline.folder / FOLDER / f"{source}.jsonl"


def preview_view(
    spark: SparkSession,
    pipeline: Pipeline,
    name: str,
    cases: Sequence[Case],
    limit: int,
    now: datetime,
    *,
    live: bool,
) -> Preview:
    """Compute up to `limit` rows of a view or source over samples of its sources; with `live`, their newest records.

    `now` is the time of the newest generated row.

    Raises `MillstreamError` if a sample is invalid or Spark cannot compute the view as a batch.
    """
    reduced = reduce_pipeline(pipeline, name)
    from_test = _feeds_of_test(reduced, cases)
    samples = _choose_samples(reduced, from_test, now, live=live)
    try:
        return _compute(spark, reduced, name, samples, limit, now)
    except MillstreamError:
        # A folder or table of the sources may not exist yet.
        with_tests = {**samples, **_fed_samples(from_test, samples)}
        if live or with_tests == samples:
            raise
        return _compute(spark, reduced, name, with_tests, limit, now)


def _compute(
    spark: SparkSession,
    pipeline: Pipeline,
    name: str,
    samples: Mapping[str, Sample],
    limit: int,
    now: datetime,
) -> Preview:
    with open_case_session(spark, pipeline) as session:

        def read(source: str, entry: SourceEntry) -> DataFrame:
            records = samples[source].records
            if records is None:
                kind = entry.source if pipeline.sources[source].static else entry.source.newest(NEWEST)
                return kind.read(session, static=True, schema=entry.ddl)
            streaming = pipeline.sources[source]
            texts = Feeder(source).raw(streaming, records, now, pipeline.session_zone)
            return create_static_frame(session, texts, raw_ddl(session, source, streaming)).coalesce(1)

        columns, rows = preview_rows(session, pipeline, name, limit, read)
    return Preview(columns, rows, samples)


def _choose_samples(
    pipeline: Pipeline, from_test: TestFeeds, now: datetime, *, live: bool
) -> dict[str, Sample]:
    """Choose the records of each source: generated rows, its file, its newest ones, or those that a test feeds.

    A source that needs a server is read only with `live`.
    """
    samples = {name: _choose_sample(pipeline, name, now, live=live) for name in pipeline.sources}
    missing = {name: sample for name, sample in samples.items() if sample == NO_SAMPLE}
    return {**samples, **_fed_samples(from_test, missing)}


def _choose_sample(pipeline: Pipeline, name: str, now: datetime, *, live: bool) -> Sample:
    source, file = pipeline.sources[name].source, sample_file(pipeline, name)
    if source.is_generated:
        return Sample(f"{GENERATED} generated rows", tuple(source.generate(GENERATED, now)))
    if not live and file.is_file():
        records = tuple(_read_file(pipeline.sources[name], file))
        return Sample(f"{_count(records, 'record')} of {FOLDER}/{file.name}", records)
    if source.can_read_once and (live or not source.has_payload):
        return Sample(f"the newest records of {source.describe()}", None)
    return NO_SAMPLE


def _fed_samples(from_test: TestFeeds, names: Iterable[str]) -> dict[str, Sample]:
    """Return the rows that the test feeds to these sources."""
    test, feeds = from_test
    return {
        name: Sample(f"{_count(feeds[name], 'row')} of the test '{test}'", feeds[name])
        for name in names
        if feeds.get(name)
    }


def _feeds_of_test(pipeline: Pipeline, cases: Iterable[Case]) -> TestFeeds:
    """Return the name of the test that feeds most rows to these sources, and those rows by source."""
    name, feeds, most = "", dict[str, tuple[Fed, ...]](), 0
    for case in cases:
        fed: dict[str, tuple[Fed, ...]] = dict(case.static)
        for step in case.steps:
            for action in step.actions:
                if isinstance(action, Feed):
                    for source, rows in action.rows.items():
                        fed[source] = (*fed.get(source, ()), *rows)
        many = sum(len(rows) for source, rows in fed.items() if source in pipeline.sources)
        if many > most:
            name, feeds, most = case.name, fed, many
    return name, feeds


def _read_file(entry: SourceEntry, file: Path) -> Iterable[Fed]:
    """Yield a file's records: messages unchanged for JSON and CSV values, else rows from JSON objects.

    Raises `MillstreamError` with the line of a row that is no JSON object.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MillstreamError(
            f"{file} cannot be read: {error}", "save it as UTF-8, one record per line"
        ) from None
    is_message = entry.source.has_payload and entry.format in (Format.JSON, Format.CSV, Format.RAW)
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    for number, line in numbered[:MOST_RECORDS]:
        if is_message:
            yield Record(value=line.encode())
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise MillstreamError(f"{file}:{number}: this is not a JSON object", "write one row per line")
        yield row


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"
