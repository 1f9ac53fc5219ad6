"""Turns what Delta says into one sentence and a cure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.connectors.cdc import UNORDERED
from millstream.diagnostics.failure import MillstreamError, NotReady, Outage

if TYPE_CHECKING:
    from millstream.connectors.delta.sink import DeltaSink

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)?\]")
_TWICE = re.compile(r"same key twice: (\{.*?\})(?=\s|$|\.)")
_UNORDERED = re.compile(rf"{UNORDERED}(\{{.*?\}})(?=\s|$|\.)")
_SHOWN = 200


def condition(error: BaseException) -> str:
    """The name that Spark and Delta give an error, such as DELTA_CONCURRENT_APPEND, or nothing."""
    found = _CONDITION.search(str(error))
    return found[1] if found else ""


def of_another_writer(name: str) -> bool:
    """Was the commit lost to another writer's?"""
    return name.startswith(("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"))


def explain(error: BaseException, sink: DeltaSink) -> MillstreamError | None:
    """What a person should read, or None for an error that is not about the table."""
    text, name, place = str(error), condition(error), sink.target()
    if twice := _TWICE.search(text):
        key = twice[1][:_SHOWN]
        return MillstreamError(
            f"two rows of one batch have the same key for Delta table {place}: {key}",
            "aggregate or drop duplicates by the key in the view, so that each batch has one row a key",
        )
    if sink.cdc and (unordered := _UNORDERED.search(text)):
        return sink.cdc.unordered(f"Delta table {place}", unordered[1][:_SHOWN])
    if of_another_writer(name):
        return Outage(
            f"other writers change Delta table {place} all the time ({name})", "give each writer its own rows"
        )
    if (
        name in ("DELTA_FAILED_TO_MERGE_FIELDS", "DELTA_MERGE_INCOMPATIBLE_DATATYPE")
        or "schema mismatch" in text
    ):
        reason = text.strip().split("\n")[0][:_SHOWN]
        return MillstreamError(
            f"Delta table {place} has columns of other types than the query: {reason}",
            "cast the column in the view, or write to another path",
        )
    if "Permission denied" in text or "AccessDenied" in text or "Mkdirs failed" in text:
        return NotReady(
            f"Delta table {place} cannot be written: permission denied", "grant the right, or change the path"
        )
    if "No space left on device" in text:
        return Outage(f"Delta table {place} cannot be written: no space is left on the device", "make room")
    return None
