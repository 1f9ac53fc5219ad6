"""Format events of a run as text, for the log, the live table and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import RESTART
from millstream.diagnostics.guarantee_table import format_guarantee_table

if TYPE_CHECKING:
    from millstream.engine.events.event_bus import Event

# The number of pieces of a failed batch that are named. A topic may have hundreds of partitions.
_SHOWN_PIECES = 5


def format_event(event: Event) -> str | None:
    """Return an event as text, or None if users need not see it."""
    data, query = event.data, event.query
    match event.event:
        case "run_started":
            heading = (
                f"{data['pipeline']}: running {', '.join(data['queries'])}; Spark's log is {data['log']}"
            )
            return "\n  ".join([heading, *format_guarantee_table(data["guarantees"])])
        case "plan":
            first, *others = data["changes"]
            more = (
                f" (and {format_count(len(others), 'more change')}; see 'millstream plan')" if others else ""
            )
            return f"{query}: {data['verdict'].replace('_', ' ')}: {first['what']}{more}"
        case "query_started":
            position = "a fresh checkpoint" if data["batch"] is None else f"batch {data['batch'] + 1}"
            return f"{query}: started from {position}"
        case "batch_committed":
            return (
                f"{query}: batch {data['batch']}, {_describe_batch(data)}"
                if data["rows_in"] or data["rows_out"]
                else None
            )
        case "dead_letter":
            return (
                f"{query}: {format_count(data['records'], 'record')} of batch {data['batch']} stored as "
                "dead letters"
            )
        case "gap":
            first, end = data["from"], data["to"]
            return (
                f"{query}: continues without offsets {first} to {end - 1} of partition {data['partition']} of topic "
                f"'{data['topic']}': {format_count(data['records'], 'record')} "
                f"{'was' if data['records'] == 1 else 'were'} "
                f"deleted before {'it was' if data['records'] == 1 else 'they were'} read"
            )
        case "set_aside":
            return f"{query}: batch {data['batch']} spooled for {data['sink']}: {data['reason']}"
        case "still_spooled":
            verb = "batch waits" if data["batches"] == 1 else "batches wait"
            return f"{query}: {data['batches']:,} {verb} for {data['sink']} since {data['since']}: {data['reason']}"
        case "delivered_later":
            return f"{query}: spooled batch {data['batch']} delivered to {data['sink']}"
        case "adopted":
            if "missing" in data:
                return f"{query}: continues without batches {data['missing']}, which {data['sink']} lacks"
            return (
                f"{query}: adopts the rows in {data['sink']}, up to batch {data['batch']} of {data['writer']}"
            )
        case "warning":
            prefix = f"{query}: " if query else ""
            return f"{prefix}{data['what']}\n  fix: {data['fix']}"
        case "waiting":
            return f"{query}: no response from {data['source']} for {data['seconds']:.0f} s; still trying"
        case "going_on":
            return f"{query}: the source responds again"
        case "retry":
            return f"{query}: {data['reason']}; again in {data['wait_seconds']} s"
        case "query_failed":
            return f"{query}: gave up{format_failure(data)}"
        case "query_stopped":
            return f"{query}: stopped ({data['reason']})"
        case "action":
            return str(data["text"])
        case "stopping":
            return "finishing the batches in progress"
        case "run_stopped":
            words = {
                0: "stopped",
                1: "stopped, because a query gave up",
                RESTART: "stopped, because few files were left to open; start it again",
            }
            return words.get(data["exit_code"], f"ended with exit code {data['exit_code']}")
    return None


def format_count(number: int, noun: str) -> str:
    """Return a number and a noun: `1 record`, `12,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_failure(data: dict[str, Any]) -> str:
    """Describe the failure of a query: the batch, the reason, the batch's input, and what to do."""
    inside = "" if data.get("batch") is None else f" in batch {data['batch']}"
    reads = data.get("reads", [])
    lines = [f"{inside}: {data['reason']}", *(f"reads {piece}" for piece in reads[:_SHOWN_PIECES])]
    if len(reads) > _SHOWN_PIECES:
        lines.append(f"and {len(reads) - _SHOWN_PIECES} more")
    if record := data.get("record"):
        value = data.get("value")
        lines.append(f"fails by itself: {', '.join(record)}" + ("" if value is None else f", value {value}"))
    return "\n  ".join([*lines, *([f"fix: {data['fix']}"] if data["fix"] else [])])


def _describe_batch(data: dict[str, Any]) -> str:
    """Describe a batch's metrics."""
    seconds = data["duration_ms"].get("triggerExecution", 0) / 1000
    message = f"{format_count(data['rows_in'], 'row')} in"
    if (rate := data.get("input_rate")) is not None:
        message += f" ({rate:,.1f} a second)"
    if data["rows_out"] is not None:
        message += f", {data['rows_out']} out"
    if data["late_rows"]:
        message += f", {data['late_rows']} late"
    for place, counts in data.get("expectations", {}).items():
        message += "".join(f", {rows} broke {place}.{name}" for name, rows in counts.items() if rows)
    return f"{message}, {seconds:.1f} s"
