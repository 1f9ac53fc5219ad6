"""Decode the raw rows of a source into the rows that views see, and separate the malformed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.api.ddl import find_column, quote_name, quote_text
from millstream.frames import avro_decode, text_decode
from millstream.frames.dead_letter_columns import (
    MALFORMED_LETTERS,
    broken_letters,
    malformed_letters,
    raw_columns,
)
from millstream.frames.expectations import RAW, apply_expectations
from millstream.pipeline.model import Format, OnMalformed, SourceEntry
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, DataFrame

    from millstream.pipeline.model import Pipeline

# Internal columns between reading and decoding. The names cannot collide with a user's.
REASON = "_millstream_reason"
DECODED = "_millstream_decoded"
_PARSED = "_millstream_parsed"
CORRUPT = "_corrupt_record"


def source_metric_name(source: str) -> str:
    """Return the name of the metric that counts a source's rows: `rows`, `malformed`, `newest` event time."""
    return f"millstream:source:{source}"


def decode(pipeline: Pipeline, name: str, raw: DataFrame, *, counted: bool = True) -> DataFrame:
    """Return the rows of a source as views see them: decoded, checked, watermarked, deduplicated.

    `raw` has the columns of the kind's `read`. An observed metric counts its rows as they are read, if `counted`.

    With `on_malformed: fail` the metric raises the error. Raised only in the filter above, it may be lost: Spark
    merges that with the conditions of a view, and evaluates `amount IS NOT NULL`, which it derives from them, before
    it. Continuous processing has no metrics.
    """
    entry = pipeline.sources[name]
    decoded = decode_rows(entry, raw)
    if entry.static:
        decoded = _check_static_rows(name, entry, raw, decoded)
    elif counted:
        decoded = _count_rows(name, entry, decoded)
    is_good = F.col(REASON).isNull()
    if entry.on_malformed is OnMalformed.FAIL:
        is_good = _fail_if_malformed(name, entry).otherwise(is_good)
    good = decoded.where(is_good)
    rows = _apply_expectations(
        pipeline, name, good, select_view_columns(entry, raw), raw_columns(entry, raw.columns)
    )
    if entry.static:
        # A batch has no watermark to wait for, so each key is kept once in the whole input.
        keys = list(entry.drop_duplicates_within_watermark)
        return rows.dropDuplicates(keys) if keys else rows
    if entry.watermark:
        rows = rows.withWatermark(entry.watermark.event_time, str(entry.watermark.delay_threshold))
    if entry.drop_duplicates_within_watermark:
        rows = rows.dropDuplicatesWithinWatermark(list(entry.drop_duplicates_within_watermark))
    return rows


def decode_rows(entry: SourceEntry, raw: DataFrame) -> DataFrame:
    """Add two columns to `raw`: the decoded struct (if there are bytes to decode) and the reason.

    The struct is NULL for bytes that cannot be decoded. The reason is NULL for a good row, else a clause that says
    what is wrong with it.
    """
    if not entry.source.has_payload or entry.format is Format.RAW:
        return raw.withColumn(REASON, _reason_of_columns(entry, raw))
    if entry.format is Format.AVRO:
        parsed, row = avro_decode.parse_avro(entry, _PARSED)
        reason = avro_decode.malformed_reason(entry, row, _missing_clauses(entry, row))
    else:
        parsed, row = text_decode.parse_text(entry, _PARSED)
        reason = text_decode.malformed_reason(entry, row, _missing_clauses(entry, row))
    # In one projection: a reason derived from the decoded row would be a second one, which copies each row again.
    both = {DECODED: F.expr(row), REASON: F.expr(reason)}
    return raw.withColumn(_PARSED, parsed).withColumns(both).drop(_PARSED)


def _apply_expectations(
    pipeline: Pipeline, name: str, good: DataFrame, view_columns: list[Column], raw: list[str]
) -> DataFrame:
    """Return the columns that views see, of the rows that pass the source's expectations."""
    entry = pipeline.sources[name]
    if not entry.expect:
        return good.select(*view_columns)
    outcomes = {expectation.otherwise for expectation in entry.expect.values()}
    if not raw or not outcomes & {Otherwise.FAIL, Otherwise.DEAD_LETTER}:
        raw = []
    raw_struct = [F.struct(*(F.col(column) for column in raw)).alias(RAW)] if raw else []
    rows = good.select(*view_columns, *raw_struct)
    columns = [column for column in rows.columns if column != RAW]
    letters = None if entry.static else broken_letters(pipeline, name, columns, raw)
    position = [column for column in entry.source.place if column in raw]
    return apply_expectations(name, f"source '{name}'", entry.expect, rows, place=position, letters=letters)


def _missing_clauses(entry: SourceEntry, row: str) -> str:
    """Return the clauses for a decoded row, whose SQL is `row`, without event time or deduplication key."""

    def find(name: str) -> tuple[str, str]:
        declared = find_column(name, entry.columns or {})
        return (name, quote_name(name)) if declared is None else (declared, f"({row}).{quote_name(declared)}")

    return " ".join(
        f"WHEN {condition} THEN {quote_text(reason)}" for condition, reason in _missing_values(entry, find)
    )


def _reason_of_columns(entry: SourceEntry, raw: DataFrame) -> Column:
    """Return why a row with columns is bad: its reader could not parse it, or its time or its key is missing."""

    def find(name: str) -> tuple[str, str] | None:
        column = find_column(name, raw.columns)
        return None if column is None else (column, quote_name(column))

    reason = F.lit(None).cast("string")
    if CORRUPT in raw.columns:
        reason = F.when(F.col(CORRUPT).isNotNull(), "the record does not fit the schema").otherwise(reason)
    for condition, missing in _missing_values(entry, find, needs_time=not entry.static):
        reason = F.when(reason.isNull() & F.expr(condition), missing).otherwise(reason)
    return reason


def _missing_values(
    entry: SourceEntry, find: Callable[[str], tuple[str, str] | None], *, needs_time: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield conditions on rows that Spark would lose, each with a reason. `find` returns a column and its SQL.

    No window contains a row without event time, and no watermark removes it. A deduplication takes all rows without a
    value in any key for one row.
    """
    time = [entry.watermark.event_time] if entry.watermark is not None and needs_time else []
    for names in (time, entry.drop_duplicates_within_watermark):
        columns = [column for name in names if (column := find(name)) is not None]
        if columns and len(columns) == len(names):
            condition = " AND ".join(f"{sql} IS NULL" for _, sql in columns)
            verb = "is" if len(columns) == 1 else "are"
            yield condition, f"{', '.join(column for column, _ in columns)} {verb} missing"


def _count_rows(name: str, entry: SourceEntry, rows: DataFrame) -> DataFrame:
    """Count rows and malformed rows as they pass, and record the newest event time."""
    size = "length(`value`)" if entry.source.has_payload else "1000"
    is_fatal = entry.on_malformed is OnMalformed.FAIL
    metrics = [
        "count(1) AS `rows`",
        f"sum(CASE WHEN {REASON} IS NOT NULL THEN {size} END) AS malformed_bytes",
    ]
    if entry.watermark is not None:
        time = entry.watermark.event_time
        declared = find_column(time, entry.columns or {}) if DECODED in rows.columns else None
        column = quote_name(time) if declared is None else f"{DECODED}.{quote_name(declared)}"
        # Spark also accepts a window as event time, and refuses any other type after this.
        if rows.select(F.expr(column)).dtypes[0][1] == "timestamp":
            # Not the timestamp, which Spark reports as text in the session's time zone without naming the zone.
            metrics.append(f"unix_micros(max({column})) AS newest")
    malformed = F.count(_fail_if_malformed(name, entry) if is_fatal else F.col(REASON)).alias("malformed")
    letters = (
        [malformed_letters(entry, rows.columns, REASON, CORRUPT).alias(MALFORMED_LETTERS)]
        if entry.on_malformed is OnMalformed.DEAD_LETTER
        else []
    )
    return rows.observe(source_metric_name(name), malformed, *map(F.expr, metrics), *letters)


def _check_static_rows(name: str, entry: SourceEntry, raw: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the rows of a static source; a malformed one ends the batch if the source says so."""
    may_be_malformed = (entry.source.has_payload and entry.format is not Format.RAW) or (
        CORRUPT in raw.columns or bool(entry.drop_duplicates_within_watermark)
    )
    if entry.on_malformed is not OnMalformed.FAIL or not may_be_malformed:
        # Without a metric in between, Spark reads only those files and columns that the conditions of a view need.
        return rows
    return rows.observe(f"millstream:static:{name}", F.count(_fail_if_malformed(name, entry)).alias("failed"))


def _fail_if_malformed(name: str, entry: SourceEntry) -> Column:
    """Return NULL for a good row. A malformed one ends the batch with an error that names its position."""
    message = [F.lit(f"malformed record in source '{name}': "), F.col(REASON)]
    for column in entry.source.place:
        message += [F.lit(f", {column} "), F.coalesce(F.col(column).cast("string"), F.lit("unknown"))]
    return F.when(F.col(REASON).isNotNull(), F.raise_error(F.concat(*message)).cast("boolean"))


def select_view_columns(entry: SourceEntry, raw: DataFrame) -> list[Column]:
    """Return the columns that views see: the schema's, then the message's own that are kept."""
    keep = [F.col(column.value) for column in entry.keep]
    if not entry.source.has_payload:
        hidden_columns = {CORRUPT, *entry.source.place}
        return [
            F.col(f"`{column}`")
            for column in raw.columns
            if column not in hidden_columns or column in (entry.columns or {})
        ]
    if entry.format is Format.RAW:
        return [F.col("value"), *keep]
    names = map(quote_name, entry.columns or {})
    return [F.expr(f"{DECODED}.{name} AS {name}") for name in names] + keep
