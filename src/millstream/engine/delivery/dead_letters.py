"""Store dead letters: read the rejected records of a batch again and store them with their position and reason."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from millstream.checkpoint.rewinds import letters_id
from millstream.connectors.api.dead_letters import COLUMNS
from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import MillstreamError
from millstream.frames.dead_letter_columns import (
    MALFORMED_LETTERS,
    MOST_COLLECTED,
    MOST_HANDED_OVER,
    MOST_HANDED_OVER_TEXT,
    collects_dead_letters,
    encode_row,
    position_values,
    raw_columns,
)
from millstream.frames.decode import CORRUPT, REASON, decode_rows, select_view_columns, source_metric_name
from millstream.frames.expectations import (
    BROKEN,
    BYTES,
    LETTERS,
    RAW,
    REJECTED,
    failed_flags,
    failed_names,
    is_dead_letter,
    metric_name,
    rejection_reason,
)
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import OnMalformed, Pipeline
from millstream.spec.expectation import Otherwise
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.api.dead_letters import DeadLetterWriter
    from millstream.engine.recovery.source_offsets import Origin

SINK = "dead_letters"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RejectedCounts:
    """The number of records of a source or view that a batch rejected: malformed ones, and failed expectations.

    `size` is their approximate size in bytes. `malformed_letters` and `broken_letters` contain these records and
    rows, if the batch handed over all of them.
    """

    malformed: int
    broken: int
    size: int
    malformed_letters: list[Any] | None = None
    broken_letters: list[Any] | None = None


@dataclass
class DeadLetters:
    """The dead letters of one query.

    A batch's rejected records are counted while it runs, and it hands over a few. Only if there are more, the batch's
    range of offsets is read once more. They are stored under the batch's id, so that a replayed batch adds nothing.
    """

    pipeline: Pipeline
    query: str
    checkpoint: Checkpoint
    origins: list[Origin]
    keeper: DeadLetterWriter

    @classmethod
    def of(
        cls, pipeline: Pipeline, query: str, query_id: str, checkpoint: Checkpoint, origins: list[Origin]
    ) -> DeadLetters:
        """Create the dead letters of a query, with the store that the pipeline declares."""
        letters = letters_id(query_id, checkpoint.folder)
        identity = SinkIdentity(pipeline.name, query, letters, SINK, OutputMode.APPEND)
        keeper = pipeline.letters.keeper(identity)
        keeper.checkpoint = checkpoint.folder
        return cls(pipeline, query, checkpoint, origins, keeper)

    def accepts_malformed(self, source: str) -> bool:
        """Return whether this source's malformed records become dead letters."""
        entry = self.pipeline.sources.get(source)
        return entry is not None and entry.on_malformed is OnMalformed.DEAD_LETTER

    @property
    def places(self) -> list[str]:
        """The sources and views of the query whose rows may become dead letters, each once."""
        sources = dict.fromkeys(origin.name for origin in self.origins if origin.name is not None)
        views = PipelineGraph.of(self.pipeline).views(self.query)
        return [name for name in (*sources, *views) if self.pipeline.may_write_dead_letters(name)]

    def keep(self, spark: SparkSession, batch_id: int, rejected_counts: Mapping[str, RejectedCounts]) -> None:
        """Store the dead letters of a batch, by source and view. A batch that is already stored adds nothing."""
        # A source that a query reads twice, for a self-join, is listed twice, mostly with the same records.
        ranges = {
            (origin.name, self._offset_range(batch_id, index, origin.number)): None
            for index, origin in enumerate(self.origins)
            if origin.name is not None and origin.name in rejected_counts
        }
        frames = [
            letters
            for number, (name, offsets) in enumerate(ranges)
            if offsets is not None
            and (
                letters := self._read_rejected(spark, batch_id, number, name, offsets, rejected_counts[name])
            )
            is not None
        ]
        rows = self._handed_over_rows(batch_id, rejected_counts)
        if not frames:
            if rows.num_rows:
                self.keeper.keep_rows(spark, rows, batch_id)
            return
        if rows.num_rows:
            frames.append(spark.createDataFrame(rows, COLUMNS))
        frame = reduce(lambda left, right: left.unionByName(right), frames)
        self.keeper.keep(frame, batch_id, sum(left.size for left in rejected_counts.values()))

    def _read_rejected(
        self,
        spark: SparkSession,
        batch_id: int,
        number: int,
        name: str,
        offsets: OffsetRange,
        rejected_counts: RejectedCounts,
    ) -> DataFrame | None:
        """Read the rejected records of one source again, in the columns of the dead-letter table."""
        entry = self.pipeline.sources[name]
        expect = entry.expect if rejected_counts.broken and rejected_counts.broken_letters is None else {}
        is_malformed_wanted = self.accepts_malformed(name) and rejected_counts.malformed_letters is None
        if not (rejected_counts.malformed and is_malformed_wanted) and not expect:
            return None
        raw = entry.source.read_range(spark, offsets, entry.ddl)
        if raw is None:
            return None
        columns = [*raw_columns(entry, raw.columns), *(CORRUPT,) * (CORRUPT in raw.columns)]
        source_columns = select_view_columns(entry, raw)
        decoded = decode_rows(entry, raw).select(
            F.struct(*(F.col(column) for column in columns)).alias(RAW)
            if columns
            else F.lit(None).alias(RAW),
            F.col(REASON),
            *source_columns,
        )
        names = [column for column in decoded.columns if column not in (RAW, REASON)]
        if expect:
            decoded = decoded.withColumn(BROKEN, F.when(F.col(REASON).isNull(), failed_flags(expect)))
        # Spark would push the filter below the decoding and decode once for each use of the result, but it pushes
        # nothing past a metric. This halves the cost.
        decoded = decoded.observe(f"millstream:letters:{name}:{number}", F.count(F.lit(1)).alias("rows"))
        malformed = F.col(REASON).isNotNull() & F.lit(is_malformed_wanted)
        row_bytes = encode_row(names) if expect else F.lit(None)
        corrupt_text = F.encode(F.col(RAW)[CORRUPT], "UTF-8") if CORRUPT in columns else F.lit(None)
        value = (
            None if "value" in columns else F.when(F.col(REASON).isNull(), row_bytes).otherwise(corrupt_text)
        )
        rejected = decoded.where(malformed | is_dead_letter(expect)) if expect else decoded.where(malformed)
        expectation_names = failed_names(expect, Otherwise.DEAD_LETTER) if expect else F.lit(None)
        expectation_reason = rejection_reason(expect) if expect else F.lit(None)
        return rejected.select(
            F.lit(self.query).alias("query"),
            F.lit(name).alias("source"),
            *position_values(columns, value),
            F.coalesce(F.col(REASON), expectation_reason).alias("reason"),
            F.lit(batch_id).cast("bigint").alias("batch_id"),
            F.current_timestamp().alias("at"),
            F.when(F.col(REASON).isNull(), expectation_names).cast("string").alias("expectation"),
        )

    def _handed_over_rows(self, batch_id: int, rejected_counts: Mapping[str, RejectedCounts]) -> pa.Table:
        """Return the dead letters that the batch itself handed over, in the columns of the dead-letter table."""
        batch = {"query": self.query, "batch_id": batch_id, "at": _to_micros(datetime.now(UTC))}
        rows = [
            {**_decode_letter(letter), **batch, "source": name}
            for name, counts in rejected_counts.items()
            for letter in (*(counts.broken_letters or ()), *(counts.malformed_letters or ()))
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def _offset_range(self, batch_id: int, index: int, number: int) -> OffsetRange | None:
        """Return the range that the batch read of the source at `index` of the plan, whose folder is `number`."""
        planned = self.checkpoint.offsets(batch_id)
        if planned is None or index >= len(planned.sources) or (end := planned.sources[index]) is None:
            return None
        previous = self.checkpoint.offsets(batch_id - 1) if batch_id else None
        start = previous.sources[index] if previous and index < len(previous.sources) else None
        files = self.checkpoint.files(number, start, end)
        return OffsetRange(start or (None if files else self.checkpoint.first(number)), end, files)


def count_rejected(letters: DeadLetters, metrics: Any) -> dict[str, RejectedCounts]:
    """Return what the last execution rejected, by source and view. `metrics` is Spark's map of observed metrics.

    Raises `MillstreamError` if more rows were to be collected than a batch can hand over.
    """
    rejected = {}
    for name in letters.places:
        malformed, size = _count_and_size(metrics, source_metric_name(name), "malformed", "malformed_bytes")
        broken, broken_size = _count_and_size(metrics, metric_name(name), REJECTED, BYTES)
        if not letters.accepts_malformed(name):
            malformed = 0
        if not malformed and not broken:
            continue
        must_collect = collects_dead_letters(letters.pipeline, name)
        if must_collect and broken > MOST_COLLECTED:
            raise MillstreamError(
                f"{broken:,} rows of '{name}' break an expectation in one batch, and at most {MOST_COLLECTED:,} of "
                "rows that cannot be read again can become dead letters",
                f"set 'otherwise: drop' or 'otherwise: warn' in the expectations of '{name}' until its rows are "
                f"correct",
            )
        if must_collect and broken:
            broken_letters = json.loads(metrics.get(metric_name(name)).get().getAs(LETTERS))
        else:
            broken_letters = _handed_over(letters, metrics.get(metric_name(name)), name, LETTERS, broken)
        source_metric = metrics.get(source_metric_name(name))
        malformed_letters = _handed_over(letters, source_metric, name, MALFORMED_LETTERS, malformed)
        rejected[name] = RejectedCounts(
            malformed, broken, size + broken_size, malformed_letters, broken_letters
        )
    return rejected


def _handed_over(letters: DeadLetters, metric: Any, name: str, field: str, count: int) -> list[Any] | None:
    """Return the `count` dead letters of a source in its metric, or None if the metric does not have all of them."""
    # The metric of a source that a query reads twice has the records of one of the two.
    if not 0 < count <= MOST_HANDED_OVER or sum(origin.name == name for origin in letters.origins) != 1:
        return None
    text = metric.get().getAs(field)
    if text is None or len(text) > MOST_HANDED_OVER_TEXT:
        return None
    handed_over: list[Any] = json.loads(text)
    return handed_over if len(handed_over) == count else None


def _decode_letter(letter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dead letter that Spark encoded as JSON, without fields that are NULL, with its bytes and its time."""
    headers = letter.get("headers")
    return {
        **letter,
        "timestamp": _to_micros(datetime.fromisoformat(letter["timestamp"]))
        if "timestamp" in letter
        else None,
        "key": _decode_bytes(letter.get("key")),
        "value": _decode_bytes(letter.get("value")),
        "headers": None
        if headers is None
        else [{"key": header.get("key"), "value": _decode_bytes(header.get("value"))} for header in headers],
    }


def _to_micros(time: datetime) -> int:
    """Return the microseconds since 1970, which Arrow takes in a tenth of the time that a datetime takes."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def _decode_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _count_and_size(metrics: Any, name: str, count: str, size: str) -> tuple[int, int]:
    """Return a metric's number of rows and their approximate size in bytes, or zeros if it is missing."""
    observed_row = metrics.get(name)
    if observed_row.isEmpty():
        return 0, 0
    values = observed_row.get()
    return int(values.getAs(count) or 0), int(values.getAs(size) or 0)
