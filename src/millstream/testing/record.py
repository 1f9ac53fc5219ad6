"""Make a test of real input: the newest records of a source, as rows where they can be read, else as they came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.diagnostics.failure import MillstreamError, WrongUse
from millstream.pipeline.graph import Graph
from millstream.pipeline.model import Format
from millstream.runtime.decode import CORRUPT
from millstream.testing import said
from millstream.testing.case import Record
from millstream.testing.cells import plain
from millstream.testing.patching import flow
from millstream.testing.rows import kinds
from millstream.testing.types import misfits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry


def named(pipeline: Pipeline, word: str) -> str:
    """The source of that name, or the one that reads the topic of that name. Raises `WrongUse`."""
    if word in pipeline.sources:
        return word
    found = [name for name, entry in pipeline.sources.items() if entry.source.takes_from(word)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(pipeline.sources)
    what = (
        f"sources {', '.join(found)} all read topic '{word}'"
        if found
        else f"there is no source or topic '{word}'"
    )
    raise WrongUse(what, f"name one of {known}")


def played_by(pipeline: Pipeline, source: str, query: str | None) -> str:
    """The query that a recorded test plays. Raises `WrongUse` when it is not clear which."""
    graph = Graph.of(pipeline)
    readers = [name for name in pipeline.queries if source in graph.upstream(name)]
    if query is not None:
        if query not in pipeline.queries:
            raise WrongUse(f"there is no query '{query}'", f"name one of {', '.join(pipeline.queries)}")
        return query
    if len(readers) != 1:
        what = "no query reads" if not readers else f"queries {', '.join(readers)} read"
        raise WrongUse(f"{what} source '{source}'", "name the query with --query")
    return readers[0]


def newest(spark: SparkSession, entry: SourceEntry, name: str, many: int) -> list[dict[str, Any]]:
    """About so many of the newest rows of a source, as its reader gives them, oldest first.

    Of a kind that cannot tell which are the newest, some of them. Raises `MillstreamError` for a source that only
    makes up its rows, `NotReady` when it cannot be asked.
    """
    if not entry.source.static:
        raise MillstreamError(f"source '{name}' has no rows that could be read back", "write a test by hand")
    frame = entry.source.newest(many).read(spark, static=True, schema=entry.ddl)
    place = [
        column
        for column in ("timestamp", *entry.source.place)
        if column in frame.columns and entry.source.payload
    ]
    if place:
        frame = frame.orderBy(*(F.desc(column) for column in place))
    # Through Arrow, times keep their zone; Row has them in that of this machine.
    rows: list[dict[str, Any]] = frame.limit(many).toArrow().to_pylist(maps_as_pydicts="strict")
    if place:
        rows.reverse()
    if not rows:
        raise MillstreamError(f"source '{name}' holds no rows yet", "send it some, or write a test by hand")
    return rows


def fed(entry: SourceEntry, row: Mapping[str, Any]) -> dict[str, Any]:
    """One row of a reader as an item of a feed: its columns where they can be read, else the message."""
    if not entry.source.payload:
        # What a reader adds of its own: where a row stands, and the text of one that fits no schema.
        beside = {CORRUPT, *entry.source.place} - set(entry.columns or ())
        return {name: plain(value) for name, value in row.items() if name not in beside}
    decoded = _decoded(entry, row.get("value"))
    if decoded is None:
        return said.fed(_message(row))
    kept = {
        keep.value: row[keep.value] for keep in entry.keep if keep.value in row and keep.value != "headers"
    }
    return {**decoded, **{name: plain(value) for name, value in kept.items()}}


def _decoded(entry: SourceEntry, value: Any) -> dict[str, Any] | None:
    """The columns of a message of JSON, or None where any of it is not of its column's type.

    Keys that the schema does not have are left out; Spark passes over them too.
    """
    if entry.format is not Format.JSON or value is None or entry.columns is None:
        return None
    try:
        data = json.loads(bytes(value))
    except ValueError:
        return None
    types = kinds(entry) or {}
    if not isinstance(data, dict):
        return None
    known = {name: one for name, one in data.items() if name.lower() in types}
    fits = all(not list(misfits(types[name.lower()], one)) for name, one in known.items())
    return known if fits and known else None


def _message(row: Mapping[str, Any]) -> Record:
    """A message as the broker gave it."""
    headers = tuple(
        (str(one["key"]), None if one["value"] is None else bytes(one["value"]))
        for one in row.get("headers") or ()
    )
    return Record(
        value=None if row.get("value") is None else bytes(row["value"]),
        key=None if row.get("key") is None else bytes(row["key"]),
        topic=row.get("topic"),
        partition=row.get("partition") or 0,
        headers=headers,
    )


def written(name: str, query: str, source: str, items: Sequence[Mapping[str, Any]]) -> str:
    """A test file with one test, whose expectation waits to be filled."""
    lines = [
        "tests:",
        f"  {flow(name)}:",
        f"    query: {query}",
        "    steps:",
        "      - feed:",
        f"          {source}:",
        *(f"            - {flow(item)}" for item in items),
        "        expect:",
    ]
    return "\n".join(lines) + "\n"
