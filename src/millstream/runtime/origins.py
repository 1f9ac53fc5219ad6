"""Which source of the spec each of a query's offsets belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.runtime.assemble import SOURCE_OPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def origins(frame: DataFrame) -> list[str | None]:
    """The names of a query's streaming sources in the order in which Spark writes their offsets.

    Spark walks the analysed plan from the top and takes each streaming leaf; so do we. None for a leaf that
    the spec does not know (a stream that a user's function opened itself).
    """
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(index) for index in range(leaves.size())]
    return [
        _name(leaf)
        for leaf in found
        if leaf.isStreaming() and "CTERelationRef" not in leaf.getClass().getName()
    ]


def _name(leaf: Any) -> str | None:
    """The option we left on the reader, from either of Spark's two kinds of streaming leaf."""
    if "StreamingRelationV2" in leaf.getClass().getName():
        value = leaf.extraOptions().get(SOURCE_OPTION)
        return str(value) if value is not None else None
    options = leaf.dataSource().options()
    return str(options.apply(SOURCE_OPTION)) if options.contains(SOURCE_OPTION) else None
