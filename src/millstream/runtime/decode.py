"""Turn the raw rows of a source into the rows that views see, and tell the malformed ones apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.pipeline.model import Format, OnMalformed, SourceEntry
from millstream.runtime import avro
from millstream.runtime.expect import RAW, hold
from millstream.runtime.letter import of_row, passing, raw_columns
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.pipeline.model import Pipeline

# Columns of ours between reading and decoding; the names cannot meet a user's.
REASON = "_millstream_reason"
DECODED = "_millstream_decoded"
CORRUPT = "_corrupt_record"
# The message as text.
_TEXT = "CAST(`value` AS STRING)"


def observed(source: str) -> str:
    """The name of the metric that counts a source's rows: `rows`, `malformed`, `newest` event time."""
    return f"millstream:source:{source}"


def decode(pipeline: Pipeline, name: str, raw: DataFrame, *, counted: bool = True) -> DataFrame:
    """The rows of a source as views see them: decoded, held to what is expected, watermarked, deduplicated.

    `raw` has the columns of the kind's `read`. Its rows are counted by an observed metric in passing, unless they
    are not to be `counted`.
    """
    entry = pipeline.sources[name]
    judged = judge(entry, raw)
    if counted and not entry.static:
        judged = _count(name, entry, judged)
    good = judged.where(
        _refuse(name, entry) if entry.on_malformed is OnMalformed.FAIL else F.col(REASON).isNull()
    )
    rows = _held(pipeline, name, good, wanted(entry, raw), raw_columns(entry, raw.columns))
    if entry.static:
        # Without a stream there is no watermark to wait for: a key is kept once in all there is.
        keys = list(entry.drop_duplicates_within_watermark)
        return rows.dropDuplicates(keys) if keys else rows
    if entry.watermark:
        rows = rows.withWatermark(entry.watermark.event_time, str(entry.watermark.delay_threshold))
    if entry.drop_duplicates_within_watermark:
        rows = rows.dropDuplicatesWithinWatermark(list(entry.drop_duplicates_within_watermark))
    return rows


def judge(entry: SourceEntry, raw: DataFrame) -> DataFrame:
    """`raw` with two columns more: the decoded struct (when there are bytes to decode) and the reason.

    The reason is NULL for a good row, else one clause: what is wrong with it.
    """
    if not entry.source.payload or entry.format is Format.RAW:
        return raw.withColumn(REASON, _reason_of_columns(entry, raw))
    if entry.format is Format.AVRO:
        return avro.judged(entry, raw, DECODED).withColumn(
            REASON, F.expr(avro.reason(entry, DECODED, _timeless(entry)))
        )
    ddl = f"{entry.ddl}, `{CORRUPT}` STRING"
    options = {**entry.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    read = F.from_json if entry.format is Format.JSON else F.from_csv
    judged = raw.withColumn(DECODED, read(F.expr(_TEXT), ddl, options))
    return judged.withColumn(REASON, _reason_of_bytes(entry))


def _held(pipeline: Pipeline, name: str, good: DataFrame, seen: list[Column], raw: list[str]) -> DataFrame:
    """The columns that views see, of the rows that stay where something is expected of them."""
    entry = pipeline.sources[name]
    if not entry.expect:
        return good.select(*seen)
    told = {one.otherwise for one in entry.expect.values()}
    if not raw or not told & {Otherwise.FAIL, Otherwise.DEAD_LETTER}:
        raw = []
    beside = [F.struct(*(F.col(column) for column in raw)).alias(RAW)] if raw else []
    rows = good.select(*seen, *beside)
    columns = [column for column in rows.columns if column != RAW]
    letter = of_row(pipeline, name, columns, raw) if passing(pipeline, name) and not entry.static else None
    place = [column for column in entry.source.place if column in raw]
    return hold(name, f"source '{name}'", entry.expect, rows, place=place, letter=letter)


def _reason_of_bytes(entry: SourceEntry) -> Column:
    """Why a message cannot be decoded. The costly questions are asked of bad rows only.

    In SQL: as columns built one by one in Python it is 230 calls of the JVM for each source of each start.
    """
    corrupt = f"({DECODED} IS NULL OR {DECODED}.{CORRUPT} IS NOT NULL)"
    why = "'the value does not fit the schema'"
    if entry.format is Format.JSON:
        why = f"CASE WHEN try_parse_json({_TEXT}) IS NULL THEN 'the value is not JSON' ELSE {why} END"
    reason = f"""
        WHEN `value` IS NULL THEN 'the value is null'
        WHEN length(`value`) = 0 THEN 'the value is empty'
        WHEN {corrupt} AND NOT is_valid_utf8({_TEXT}) THEN 'the value is not UTF-8'
        WHEN {corrupt} THEN {why}"""
    return F.expr(f"CASE {reason} {_timeless(entry)} END")


def _timeless(entry: SourceEntry) -> str:
    """The clause on a decoded row without event time: it falls into no window and would never leave the state."""
    if entry.watermark is None or entry.watermark.event_time not in (entry.columns or {}):
        return ""
    time = entry.watermark.event_time
    return f"WHEN {DECODED}.{_quoted(time)} IS NULL THEN {_literal(f'{time} is missing')}"


def _quoted(name: str) -> str:
    """A column's name in SQL, whatever letters it has."""
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _reason_of_columns(entry: SourceEntry, raw: DataFrame) -> Column:
    """Why a row that came with columns is bad: its reader could not parse it, or it has no event time."""
    reason = F.lit(None).cast("string")
    if CORRUPT in raw.columns:
        reason = F.when(F.col(CORRUPT).isNotNull(), "the record does not fit the schema").otherwise(reason)
    if entry.watermark is not None and not entry.static and entry.watermark.event_time in raw.columns:
        time = entry.watermark.event_time
        reason = F.when(reason.isNull() & F.col(time).isNull(), f"{time} is missing").otherwise(reason)
    return reason


def _count(name: str, entry: SourceEntry, judged: DataFrame) -> DataFrame:
    """Count rows and malformed rows in passing, and note the newest event time."""
    size = "length(`value`)" if entry.source.payload else "1000"
    figures = [
        "count(1) AS `rows`",
        f"count({REASON}) AS malformed",
        f"sum(CASE WHEN {REASON} IS NOT NULL THEN {size} END) AS malformed_bytes",
    ]
    if entry.watermark is not None:
        time = entry.watermark.event_time
        decoded = DECODED in judged.columns and time in (entry.columns or {})
        figures.append(f"max({f'{DECODED}.' if decoded else ''}{_quoted(time)}) AS newest")
    return judged.observe(observed(name), *map(F.expr, figures))


def _refuse(name: str, entry: SourceEntry) -> Column:
    """True for a good row; a malformed one ends the batch with its place."""
    place = [F.lit(f"malformed record in source '{name}': "), F.col(REASON)]
    for column in entry.source.place:
        place += [F.lit(f", {column} "), F.coalesce(F.col(column).cast("string"), F.lit("unknown"))]
    raised = F.raise_error(F.concat(*place)).cast("boolean")
    return F.when(F.col(REASON).isNotNull(), raised).otherwise(F.col(REASON).isNull())


def wanted(entry: SourceEntry, raw: DataFrame) -> list[Column]:
    """The columns that views see: the schema's, then the message's own that are kept."""
    keep = [F.col(column.value) for column in entry.keep]
    if not entry.source.payload:
        ours = {CORRUPT, *entry.source.place}
        return [
            F.col(f"`{column}`")
            for column in raw.columns
            if column not in ours or column in (entry.columns or {})
        ]
    if entry.format is Format.RAW:
        return [F.col("value"), *keep]
    names = map(_quoted, entry.columns or {})
    return [F.expr(f"{DECODED}.{name} AS {name}") for name in names] + keep
