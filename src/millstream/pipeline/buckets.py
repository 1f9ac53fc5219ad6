"""Places of a pipeline on S3, and the settings with which Spark reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.pipeline.model import Pipeline

SCHEME = "s3a://"
"""The scheme of Hadoop's client of S3. PySpark knows no other one."""
PREFIX = "spark.hadoop.fs.s3a."
"""What the names of the client's settings begin with in a spec."""

CLIENT_SETTINGS = {
    # The default of Hadoop 3.5 reads ahead for analytic engines; this is the client's own, long used stream.
    f"{PREFIX}input.stream.type": "classic",
    # An outage reaches the run within seconds, which reports it and tries again. By default the client alone tries
    # for minutes, and the query looks alive.
    f"{PREFIX}attempts.maximum": "3",
    f"{PREFIX}retry.limit": "4",
}
"""Settings of the client in which we differ from Hadoop. A spec's own take precedence."""


def uses_s3(pipeline: Pipeline) -> bool:
    """Return whether a part of the spec is on S3, or a setting of the spec is of its client."""
    entries = [
        *(entry.source for entry in pipeline.sources.values()),
        *(entry.sink for query in pipeline.queries.values() for entry in query.to),
        pipeline.letters,
    ]
    paths = [getattr(entry, "path", None) for entry in entries]
    paths += [pipeline.checkpoint(query) for query in pipeline.queries]
    return any(str(path).startswith(SCHEME) for path in paths) or any(
        name.startswith(PREFIX) for name in pipeline.spark
    )


def find_written_places(
    pipeline: Pipeline, queries: Sequence[str]
) -> Iterator[tuple[tuple[str | int, ...], Location]]:
    """Yield the places on S3 that these queries write, each with its path in the spec."""
    for query in queries:
        for number, entry in enumerate(pipeline.queries[query].to):
            place = getattr(entry.sink, "path", None)
            if isinstance(place, Location) and place.startswith(SCHEME):
                yield ("queries", query, "to", number, "sink"), place
    # The graph loads the parser of SQL, which a command that only reads the spec does not need.
    from millstream.pipeline.graph import PipelineGraph  # noqa: PLC0415

    place = getattr(pipeline.letters, "path", None)
    read = {name for query in queries for name in PipelineGraph.of(pipeline).sources_of(query)}
    if (
        isinstance(place, Location)
        and place.startswith(SCHEME)
        and any(map(pipeline.may_write_dead_letters, (*read, *pipeline.views)))
    ):
        yield ("dead_letters",), place
