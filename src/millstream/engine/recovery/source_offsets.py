"""Find the source of the spec to which each of a query's offsets belongs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.frames.build_views import SOURCE_OPTION
from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.checkpoint.folder import Checkpoint


@dataclass(frozen=True)
class Origin:
    """One of a query's streaming sources, listed as often as the plan reads it."""

    name: str | None
    """The source of the spec. None for a stream that a user's function opened itself."""
    number: int
    """The number of its folder in the checkpoint's `sources`."""


def list_origins(frame: DataFrame) -> list[Origin]:
    """List a query's streaming sources in the order in which Spark writes their offsets.

    Like Spark, walk the analysed plan from the top and take each streaming leaf. Equal leaves, such as both halves of
    a union of a view with itself, share one reader and its folder, but each has its own offsets.
    """
    leaves = internals.analyzed_plan(frame).collectLeaves()
    all_leaves = [leaves.apply(index) for index in range(leaves.size())]
    readers: list[Any] = []
    source_origins = []
    for leaf in all_leaves:
        if not leaf.isStreaming() or "CTERelationRef" in leaf.getClass().getName():
            continue
        number = next(
            (position for position, reader in enumerate(readers) if reader.equals(leaf)), len(readers)
        )
        if number == len(readers):
            readers.append(leaf)
        source_origins.append(Origin(_source_name(leaf), number))
    return source_origins


def committed_offsets(checkpoint: Checkpoint, committed: int | None) -> list[Any]:
    """Return where each source's committed data ends, as Spark's JSON parsed; None where it has no offsets.

    Empty if no batch is committed, or if the file of its offsets is deleted.
    """
    planned = None if committed is None else checkpoint.offsets(committed)
    return [] if planned is None else [_parse_json(text) for text in planned.sources]


def _parse_json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        # Some sources of third parties write offsets that are not JSON.
        return None


def _source_name(leaf: Any) -> str | None:
    """Return our option on the reader, from either of Spark's two kinds of streaming leaf."""
    if "StreamingRelationV2" in leaf.getClass().getName():
        value = leaf.extraOptions().get(SOURCE_OPTION)
        return str(value) if value is not None else None
    options = leaf.dataSource().options()
    return str(options.apply(SOURCE_OPTION)) if options.contains(SOURCE_OPTION) else None
