"""Places of a pipeline on S3, and whether it has any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spec.location import S3_SCHEME, S3_SETTINGS, Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.pipeline.model import Pipeline


def uses_s3(pipeline: Pipeline) -> bool:
    """Return whether a part of the spec is on S3, or a setting of the spec is of its client."""
    entries = [
        *(entry.source for entry in pipeline.sources.values()),
        *(entry.sink for query in pipeline.queries.values() for entry in query.to),
        pipeline.letters,
    ]
    paths = [getattr(entry, "path", None) for entry in entries]
    paths += [pipeline.checkpoint(query) for query in pipeline.queries]
    return any(str(path).startswith(S3_SCHEME) for path in paths) or any(
        name.startswith(S3_SETTINGS) for name in pipeline.spark
    )


def find_checkpoints(
    pipeline: Pipeline, queries: Sequence[str]
) -> Iterator[tuple[tuple[str | int, ...], Location]]:
    """Yield the checkpoints of these queries that are on S3, each with its path in the spec."""
    for query in queries:
        place, is_own = pipeline.checkpoint(query), pipeline.queries[query].checkpoint is not None
        if place.is_on_s3:
            yield (("queries", query, "checkpoint") if is_own else ("defaults", "checkpoints")), place


def find_written_places(
    pipeline: Pipeline, queries: Sequence[str]
) -> Iterator[tuple[tuple[str | int, ...], Location]]:
    """Yield the places on S3 that these queries write, each with its path in the spec."""
    for query in queries:
        for number, entry in enumerate(pipeline.queries[query].to):
            place = getattr(entry.sink, "path", None)
            if isinstance(place, Location) and place.is_on_s3:
                yield ("queries", query, "to", number, "sink"), place
    yield from find_checkpoints(pipeline, queries)
    # The graph loads the parser of SQL, which a command that only reads the spec does not need.
    from millstream.pipeline.graph import PipelineGraph  # noqa: PLC0415

    place = getattr(pipeline.letters, "path", None)
    read = {name for query in queries for name in PipelineGraph.of(pipeline).sources_of(query)}
    if (
        isinstance(place, Location)
        and place.is_on_s3
        and any(map(pipeline.may_write_dead_letters, (*read, *pipeline.views)))
    ):
        yield ("dead_letters",), place
