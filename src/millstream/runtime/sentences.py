"""Events of a run in words: the lines of a log, of the table and of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.promised import table

if TYPE_CHECKING:
    from millstream.runtime.events import Event

# So many pieces of a failed batch are named; a topic may have hundreds of partitions.
_PIECES = 5


def sentence(event: Event) -> str | None:
    """An event in words, or None for one that a person need not see."""
    data, query = event.data, event.query
    match event.event:
        case "run_started":
            said = f"{data['pipeline']}: running {', '.join(data['queries'])}; Spark's log is {data['log']}"
            return "\n  ".join([said, *table(data["guarantees"])])
        case "query_started":
            since = "a fresh checkpoint" if data["batch"] is None else f"batch {data['batch'] + 1}"
            return f"{query}: started from {since}"
        case "batch_committed":
            return (
                f"{query}: batch {data['batch']}, {_batch(data)}"
                if data["rows_in"] or data["rows_out"]
                else None
            )
        case "dead_letter":
            return f"{query}: {many(data['records'], 'record')} of batch {data['batch']} set aside"
        case "gap":
            first, end = data["from"], data["to"]
            return (
                f"{query}: goes on without offsets {first} to {end - 1} of partition {data['partition']} of topic "
                f"'{data['topic']}': {many(data['records'], 'record')} {'was' if data['records'] == 1 else 'were'} "
                f"deleted before {'it was' if data['records'] == 1 else 'they were'} read"
            )
        case "set_aside":
            return f"{query}: batch {data['batch']} set aside for {data['sink']}: {data['reason']}"
        case "delivered_later":
            return f"{query}: batch {data['batch']}, which was set aside, delivered to {data['sink']}"
        case "adopted":
            return f"{query}: takes over what {data['sink']} holds, up to batch {data['batch']} of {data['writer']}"
        case "warning":
            return f"{query}: {data['what']}\n  fix: {data['fix']}"
        case "waiting":
            return f"{query}: no answer from {data['source']} for {data['seconds']:.0f} s; asking on"
        case "going_on":
            return f"{query}: goes on"
        case "retry":
            return f"{query}: {data['reason']}; again in {data['wait_seconds']} s"
        case "query_failed":
            return f"{query}: gave up{last_words(data)}"
        case "query_stopped":
            return f"{query}: stopped ({data['reason']})"
        case "stopping":
            return "finishing the batches in progress"
        case "run_stopped":
            words = {0: "stopped", 1: "stopped, because a query gave up"}
            return words.get(data["exit_code"], f"ended with exit code {data['exit_code']}")
    return None


def many(number: int, one: str) -> str:
    """So many of something: `1 record`, `12,000 records`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def last_words(data: dict[str, Any]) -> str:
    """The end of a query in words: in which batch, why, what that batch reads, what to do."""
    inside = "" if data.get("batch") is None else f" in batch {data['batch']}"
    reads = data.get("reads", [])
    lines = [f"{inside}: {data['reason']}", *(f"reads {piece}" for piece in reads[:_PIECES])]
    if len(reads) > _PIECES:
        lines.append(f"and {len(reads) - _PIECES} more")
    if record := data.get("record"):
        value = data.get("value")
        lines.append(f"fails by itself: {', '.join(record)}" + ("" if value is None else f", value {value}"))
    return "\n  ".join([*lines, *([f"fix: {data['fix']}"] if data["fix"] else [])])


def _batch(data: dict[str, Any]) -> str:
    """A batch's figures in words."""
    seconds = data["duration_ms"].get("triggerExecution", 0) / 1000
    said = f"{many(data['rows_in'], 'row')} in"
    if (rate := data.get("input_rate")) is not None:
        said += f" ({rate:,.1f} a second)"
    if data["rows_out"] is not None:
        said += f", {data['rows_out']} out"
    if data["late_rows"]:
        said += f", {data['late_rows']} late"
    for place, told in data.get("expectations", {}).items():
        said += "".join(f", {rows} broke {place}.{name}" for name, rows in told.items() if rows)
    return f"{said}, {seconds:.1f} s"
