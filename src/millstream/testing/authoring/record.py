"""Create a test from real input: the newest records of a source, as rows if they decode, else as messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.diagnostics.failure import InvalidInput, MillstreamError
from millstream.frames.decode import CORRUPT
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import Format, KeptColumn
from millstream.testing.authoring.yaml_edit import format_flow
from millstream.testing.files import serializer
from millstream.testing.files.row_parser import column_types
from millstream.testing.harness.fed_values import to_fed_row
from millstream.testing.model import Record
from millstream.testing.values.formatting import decode_printable, to_plain
from millstream.testing.values.type_check import find_mismatches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry


def find_source(pipeline: Pipeline, word: str) -> str:
    """Return the source with that name, or the one that reads that topic. Raises `InvalidInput`."""
    if word in pipeline.sources:
        return word
    readers = [name for name, entry in pipeline.sources.items() if entry.source.reads_topic(word)]
    if len(readers) == 1:
        return readers[0]
    known = ", ".join(pipeline.sources)
    message = (
        f"sources {', '.join(readers)} all read topic '{word}'"
        if readers
        else f"there is no source or topic '{word}'"
    )
    raise InvalidInput(message, f"name one of {known}")


def choose_query(pipeline: Pipeline, source: str, query: str | None) -> str:
    """Return the query that a recorded test runs. Raises `InvalidInput` if it is ambiguous."""
    graph = PipelineGraph.of(pipeline)
    readers = [name for name in pipeline.queries if source in graph.sources_of(name)]
    if query is not None:
        if query not in pipeline.queries:
            raise InvalidInput(f"there is no query '{query}'", f"name one of {', '.join(pipeline.queries)}")
        return query
    if len(readers) != 1:
        problem = "no query reads" if not readers else f"queries {', '.join(readers)} read"
        raise InvalidInput(f"{problem} source '{source}'", "name the query with --query")
    return readers[0]


def read_newest_rows(spark: SparkSession, entry: SourceEntry, name: str, many: int) -> list[dict[str, Any]]:
    """Read about `many` of the newest rows of a source, oldest first.

    If a kind of source has no order, any rows are returned. Raises `MillstreamError` for a source that generates its
    rows, `NotReady` if the source cannot be reached.
    """
    if not entry.source.can_read_once:
        raise MillstreamError(f"the rows of source '{name}' cannot be read", "write a test by hand")
    frame = entry.source.newest(many).read(spark, static=True, schema=entry.ddl)
    order_columns = [
        column
        for column in ("timestamp", *entry.source.place)
        if column in frame.columns and entry.source.has_payload
    ]
    if order_columns:
        frame = frame.orderBy(*(F.desc(column) for column in order_columns))
    # Arrow preserves the time zone of timestamps; Row converts them to the machine's time zone.
    rows: list[dict[str, Any]] = frame.limit(many).toArrow().to_pylist(maps_as_pydicts="strict")
    if order_columns:
        rows.reverse()
    if not rows:
        raise MillstreamError(
            f"source '{name}' has no rows yet", "send some rows to it, or write a test by hand"
        )
    return rows


def to_feed_item(entry: SourceEntry, row: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """Convert a row of a reader to an item of a feed: its columns if they decode, else the message.

    `zone` is the time zone of the session that reads the source.
    """
    if not entry.source.has_payload:
        # Columns that the reader adds: the position of a row, and the text of a malformed one.
        reader_columns = {CORRUPT, *entry.source.place} - set(entry.columns or ())
        return serializer.serialize_row({name: row[name] for name in row if name not in reader_columns})
    decoded = _decode_json(entry, row.get("value"), zone)
    metadata = {
        keep.value: row[keep.value] for keep in entry.keep if keep.value in row and keep.value != "headers"
    }
    # A key that is fed as a column is printable text.
    if decoded is None or decode_printable(bytes(metadata.get(KeptColumn.KEY) or b"")) is None:
        return serializer.serialize_feed_item(_to_message(entry, row))
    return {**decoded, **{name: to_plain(value) for name, value in metadata.items()}}


def _decode_json(entry: SourceEntry, value: Any, zone: str) -> dict[str, Any] | None:
    """Decode the columns of a JSON message, or return None if a value does not match its column's type.

    Keys that are not in the schema, or there in another case, are left out, as in Spark.
    """
    if entry.format is not Format.JSON or value is None or entry.columns is None:
        return None
    try:
        data = json.loads(bytes(value))
    except ValueError:
        return None
    types = column_types(entry) or {}
    if not isinstance(data, dict):
        return None
    in_schema = {name: item for name, item in data.items() if name in entry.columns}
    all_match = all(not list(find_mismatches(types[name.lower()], item)) for name, item in in_schema.items())
    try:
        # A test accepts other names of fields, and other texts, than Spark does.
        is_exact = all_match and to_fed_row(entry, in_schema, zone) == in_schema
    except ValueError:
        return None
    return in_schema if in_schema and is_exact else None


def _to_message(entry: SourceEntry, row: Mapping[str, Any]) -> Record:
    """Convert a row to the message that the broker delivered, with its timestamp if the source keeps it."""
    headers = tuple(
        (str(header["key"]), None if header["value"] is None else bytes(header["value"]))
        for header in row.get("headers") or ()
    )
    return Record(
        value=None if row.get("value") is None else bytes(row["value"]),
        key=None if row.get("key") is None else bytes(row["key"]),
        topic=row.get("topic"),
        partition=row.get("partition") or 0,
        timestamp=row.get("timestamp") if KeptColumn.TIMESTAMP in entry.keep else None,
        headers=headers,
    )


def format_test(name: str, query: str, source: str, items: Sequence[Mapping[str, Any]]) -> str:
    """Return a test file with one test whose expectation is empty."""
    lines = [
        "tests:",
        f"  {format_flow(name)}:",
        f"    query: {query}",
        "    steps:",
        "      - feed:",
        f"          {source}:",
        *(f"            - {format_flow(item)}" for item in items),
        "        expect:",
    ]
    return "\n".join(lines) + "\n"
