"""Turn errors of Spark and Delta into one sentence and a fix."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from millstream.connectors.api.cdc import UNORDERED
from millstream.connectors.api.messages import repeated_key_error
from millstream.diagnostics.failure import CheckpointMismatch, MillstreamError, NotReady, Outage

if TYPE_CHECKING:
    from millstream.connectors.delta.sink import DeltaSink

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)?\]")
TWICE = "same key twice: "
"""Prefix of Spark's error for a key that occurs twice in a batch, followed by key and counts as JSON."""

_CONFLICTS = (
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_PATH_EXISTS",
    "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)
_UNORDERED = re.compile(rf"{UNORDERED}(\{{.*?\}})(?=\s|$|\.)")
_SHOWN = 200


def error_condition(error: BaseException) -> str:
    """Return Spark's or Delta's error condition, such as DELTA_CONCURRENT_APPEND, or an empty string."""
    match = _CONDITION.search(str(error))
    return match[1] if match else ""


def is_concurrent_write(name: str) -> bool:
    """Return whether the commit lost against another writer's commit, or found the table that another has created."""
    return name.startswith(_CONFLICTS)


def deleted_table_error(sink: DeltaSink, query: str) -> CheckpointMismatch:
    """Return the error for a table that was deleted after the query had begun to write to it."""
    return CheckpointMismatch(
        f"Delta table {sink.target()} was deleted while query '{query}' was running",
        "restore the table; the next start names the batches that it lacks",
    )


def explain(error: BaseException, sink: DeltaSink) -> MillstreamError | None:
    """Explain the error; None if it is not about the table."""
    text, name, place = str(error), error_condition(error), sink.target()
    if TWICE in text:
        details, _ = json.JSONDecoder().raw_decode(text.partition(TWICE)[2])
        return repeated_key_error(
            f"Delta table {place}", details["key"], details["rows"], details["deletions"]
        )
    if sink.cdc and (unordered := _UNORDERED.search(text)):
        return sink.cdc.unordered(f"Delta table {place}", unordered[1][:_SHOWN])
    if is_concurrent_write(name):
        return Outage(
            f"other writers repeatedly changed the same files of Delta table {place} ({name})",
            "let each writer change different rows, or use a single query",
        )
    if "[USER_RAISED_EXCEPTION]" in text:
        # An expectation or a malformed record, whose text may quote a row.
        return None
    if (
        name in ("DELTA_FAILED_TO_MERGE_FIELDS", "DELTA_MERGE_INCOMPATIBLE_DATATYPE")
        or "schema mismatch" in text
    ):
        reason = text.strip().split("\n")[0][:_SHOWN]
        return MillstreamError(
            f"the columns of Delta table {place} have other types than the query: {reason}",
            "cast the column in the view, or write to another path",
        )
    if "Permission denied" in text or "AccessDenied" in text or "Mkdirs failed" in text:
        return NotReady(
            f"Delta table {place} cannot be written: permission denied",
            "grant write permission, or change the path",
        )
    if "No space left on device" in text:
        return Outage(
            f"Delta table {place} cannot be written: no space is left on the device", "free some space"
        )
    return None
