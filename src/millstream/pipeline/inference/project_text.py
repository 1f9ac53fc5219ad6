"""Write the spec of a pipeline for records that were read, with comments on what was seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from millstream.pipeline.inference.column_types import Observed, observe, quote_column, unique_columns
from millstream.pipeline.inference.event_time import TimeColumn, TimeUnit, find_event_time, format_seconds
from millstream.pipeline.load.yaml_scalars import dump_value
from millstream.pipeline.model import Format, KeptColumn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.pipeline.inference.read_records import Records

_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_CONVERSIONS = {
    TimeUnit.SECONDS: "timestamp_seconds",
    TimeUnit.MILLIS: "timestamp_millis",
    TimeUnit.MICROS: "timestamp_micros",
}
# A delay for records whose event time is the time at which they were sent, which is nearly in order.
_DELAY_OF_MESSAGES = "10 seconds"


def write_spec(records: Records, name: str) -> str:
    """Return the text of a spec that reads the records, counts them per minute and writes the counts to Delta.

    Without a time in the records, it copies them.
    """
    observed = observe(records.rows)
    time = find_event_time(records.rows, records.partitions)
    lines = [
        *_head(records, name),
        "",
        "sources:",
        *_source(records, observed, time),
        "",
        *_views_and_queries(records, time),
    ]
    return "\n".join(lines) + "\n"


def describe_time(records: Records) -> str:
    """Return in a few words which event time and watermark the spec has."""
    time = find_event_time(records.rows, records.partitions)
    if time is not None:
        return f"event time '{time.name}', watermark {time.delay}"
    return (
        f"event time of the messages, watermark {_DELAY_OF_MESSAGES}" if records.format else "no event time"
    )


def list_columns(records: Records) -> dict[str, str]:
    """Return the columns of the source and their types."""
    time = find_event_time(records.rows, records.partitions)
    return {name: kind for name, kind, _ in _columns(records, observe(records.rows), time)}


def _head(records: Records, name: str) -> Iterator[str]:
    yield "# yaml-language-server: $schema=.millstream/schema.json"
    yield "#"
    yield f"# Written by 'millstream init' from {len(records.rows):,} records of {records.subject}."
    yield "# Types, event time and watermark are what these records show: compare them with what you know."
    if records.malformed:
        yield f"# {records.malformed:,} more could not be decoded; in a run they become dead letters."
    if records.nulls:
        yield f"# {records.nulls:,} more had no value; in a run they become dead letters."
    yield f"name: {name}"
    yield ""
    yield "defaults:"
    yield "  trigger: 5 seconds"


def _source(records: Records, observed: Observed, time: TimeColumn | None) -> Iterator[str]:
    yield f"  {records.name}:"
    yield f"    {records.kind}:"
    for key, value in records.settings.items():
        if isinstance(value, Mapping):
            yield f"      {key}:"
            yield from (f"        {name}: {_yaml(item)}" for name, item in value.items())
        else:
            yield f"      {key}: {_yaml(value)}"
    if records.format is not None:
        yield f"    format: {records.format}"
    if records.avro:
        yield "    avro_value:"
        yield from (f"      {name}: {_yaml(item)}" for name, item in records.avro.items())
    if records.options:
        yield f"    options: {dump_value(dict(records.options))}"
    yield from _schema(list(_columns(records, observed, time)), is_declared=bool(records.avro))
    if time is not None:
        yield from (f"    # {sentence}" for sentence in _time_sentences(records, time))
        if not _needs_view(records, time):
            yield f"    watermark: {{event_time: {_key(time.name)}, delay_threshold: {time.delay}}}"
    elif _has_message_time(records):
        yield "    # No column has a time in nearly every record, so the event time is that of the message."
        yield f"    keep: [{KeptColumn.TIMESTAMP.value}]"
        yield f"    watermark: {{event_time: {KeptColumn.TIMESTAMP.value}, delay_threshold: {_DELAY_OF_MESSAGES}}}"
    is_untimed = time is not None and time.missing and not _needs_view(records, time)
    if records.columns is None or records.avro or is_untimed:
        yield "    on_malformed: dead_letter"
    if time is not None and _needs_view(records, time):
        # The watermark is in the view, and no window contains a row without event time.
        condition = dump_value(f"{quote_column(time.name)} IS NOT NULL")
        yield f"    expect: {{has_time: {{that: {condition}, otherwise: dead_letter}}}}"


def _schema(columns: Sequence[tuple[str, str, str]], *, is_declared: bool) -> Iterator[str]:
    """Yield the columns, as a comment where the source takes them from the Avro schema."""
    margin = "    # " if is_declared else "    "
    yield f"{margin}The columns are those of the Avro schema:" if is_declared else f"{margin}schema:"
    width = max(len(f"{_key(name)}: {_type(kind)}") for name, kind, _ in columns)
    for name, kind, note in columns:
        text = f"{_key(name)}: {_type(kind)}"
        yield f"{margin}  {text.ljust(width)}  # {note}" if note else f"{margin}  {text}"


def _views_and_queries(records: Records, time: TimeColumn | None) -> Iterator[str]:
    name = records.name
    column = (
        quote_column(time.name)
        if time
        else KeptColumn.TIMESTAMP.value
        if _has_message_time(records)
        else None
    )
    if column is None:
        yield from (
            "queries:",
            f"  {name}_copy:",
            f"    from: {name}",
            "    to:",
            f"      - delta: {{path: lake/{name}}}",
        )
        return
    source = name
    yield "views:"
    if time is not None and _needs_view(records, time):
        yield f"  {name}_timed: |"
        yield f"    SELECT * EXCEPT ({column}), {_CONVERSIONS[time.unit]}({column}) AS {column}"
        yield f"    FROM {name}"
        yield ""
        source = f"{name}_timed WATERMARK {column} DELAY OF INTERVAL {time.delay.upper()}"
    yield f"  {name}_by_minute: |"
    yield "    SELECT window.start AS minute, COUNT(*) AS records"
    yield f"    FROM {source}"
    yield f"    GROUP BY window({column}, '1 minute')"
    yield ""
    yield "queries:"
    yield f"  {name}_by_minute:"
    yield "    output_mode: update"
    yield "    to:"
    yield "      - console: {}"
    yield f"      - delta: {{path: lake/{name}_by_minute, merge_on: [minute]}}"


def _columns(records: Records, observed: Observed, time: TimeColumn | None) -> Iterator[tuple[str, str, str]]:
    """Yield each column with its type and a note about it."""
    total = len(records.rows)
    names = unique_columns(observed.fields) if records.columns is None else dict(observed.fields)
    for name in records.columns or names:
        item = names.get(name, Observed())
        kind = (records.columns or {}).get(name) or item.type
        missing = total - item.count + item.nulls
        notes = []
        if not item.kinds:
            notes.append("always null: the type is a guess" if records.columns is None else "always null")
        elif missing:
            notes.append(f"missing or null in {missing:,} of {total:,}")
        if records.columns is None and item.is_mixed:
            notes.append("of several types, so read as text")
        if time is not None and name == time.name and time.unit is not TimeUnit.TIMESTAMP:
            kind = kind if _needs_view(records, time) else TimeUnit.TIMESTAMP.value
            notes.append(f"{time.unit} since 1970")
        yield name, kind, "; ".join(notes)


def _needs_view(records: Records, time: TimeColumn) -> bool:
    """Return whether a view must convert the time. Spark reads only numbers of seconds in JSON as timestamps."""
    is_json = records.format is Format.JSON or (records.format is None and records.columns is None)
    seconds = time.unit is TimeUnit.SECONDS and is_json and "header" not in records.settings
    return time.unit is not TimeUnit.TIMESTAMP and not seconds


def _has_message_time(records: Records) -> bool:
    taken = any(KeptColumn.TIMESTAMP.value in map(str.lower, row) for row in records.rows)
    return records.format is not None and not taken


def _time_sentences(records: Records, time: TimeColumn) -> Iterator[str]:
    """Yield what was seen of the event time."""
    yield (
        f"'{time.name}' is the event time: {time.first:%Y-%m-%d %H:%M:%S} to {time.last:%Y-%m-%d %H:%M:%S} in UTC."
    )
    total = len(records.rows)
    if time.late:
        behind = format_seconds(max(1, round(time.disorder.total_seconds())))
        yield f"{time.late:,} of {total:,} records came after a newer one, by at most about {behind}."
        yield "The delay is twice that, rounded up. A later record is dropped from its window."
    else:
        yield f"All {total:,} records came in order. The delay leaves a little room."
    if time.missing:
        yield f"{time.missing:,} records have no such time; in a run they become dead letters."
    if not time.has_zone:
        yield "The times have no zone: Spark reads them in spark.sql.session.timeZone."


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    text = str(value)
    is_plain = re.fullmatch(r"[\w./$][\w./:{}$,-]*", text) and not text.isdigit()
    return text if is_plain else dump_value(text)


def _key(name: str) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_][\w-]*", name) and name.lower() not in _YAML_WORDS
    return name if is_plain else dump_value(name)


def _type(kind: str) -> str:
    return kind if re.fullmatch(r"[\w(),]+", kind) else dump_value(kind)
