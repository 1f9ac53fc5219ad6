"""Which source of the spec each of a query's offsets belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.runtime.assemble import SOURCE_OPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Origin:
    """One of a query's streaming sources, as often as its plan reads it."""

    name: str | None
    """The source of the spec; None for a stream that a user's function opened itself."""
    number: int
    """Of its folder in the checkpoint's `sources`."""


def origins(frame: DataFrame) -> list[Origin]:
    """A query's streaming sources in the order in which Spark writes their offsets.

    Spark walks the analysed plan from the top and takes each streaming leaf; so do we. Leaves that are equal, such as
    both halves of a union of a view with itself, share one reader and its folder, and each has offsets of its own.
    """
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(index) for index in range(leaves.size())]
    readers: list[Any] = []
    told = []
    for leaf in found:
        if not leaf.isStreaming() or "CTERelationRef" in leaf.getClass().getName():
            continue
        number = next((at for at, reader in enumerate(readers) if reader.equals(leaf)), len(readers))
        if number == len(readers):
            readers.append(leaf)
        told.append(Origin(_name(leaf), number))
    return told


def _name(leaf: Any) -> str | None:
    """The option we left on the reader, from either of Spark's two kinds of streaming leaf."""
    if "StreamingRelationV2" in leaf.getClass().getName():
        value = leaf.extraOptions().get(SOURCE_OPTION)
        return str(value) if value is not None else None
    options = leaf.dataSource().options()
    return str(options.apply(SOURCE_OPTION)) if options.contains(SOURCE_OPTION) else None
