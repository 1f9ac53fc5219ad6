"""Store dead letters: read the rejected records of a batch again and store them with their position and reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.connectors.api.values.offsets import OffsetRange
from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import MillstreamError
from millstream.frames.dead_letter_columns import (
    KEPT,
    MALFORMED_LETTERS,
    MOST_MALFORMED,
    PLACE,
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
    MOST_LETTERS,
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


@dataclass(frozen=True)
class RejectedCounts:
    """The number of records of a source or view that a batch rejected: malformed ones, and failed expectations.

    `size` is their approximate size in bytes. `letters` contains the rows that fail expectations as a JSON array, if
    they cannot be read again. `malformed_letters` contains the malformed records, if the batch handed over all.
    """

    malformed: int
    broken: int
    size: int
    letters: str | None = None
    malformed_letters: str | None = None


@dataclass
class DeadLetters:
    """The dead letters of one query.

    A batch's malformed records are counted while it runs. Only if there are some, the batch's range of offsets is
    read once more and the records are stored under the batch's id, so that a replayed batch adds nothing.
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
        identity = SinkIdentity(pipeline.name, query, query_id, SINK, OutputMode.APPEND)
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
        frames += [
            self._parse_letters(spark, batch_id, name, letters)
            for name, left in rejected_counts.items()
            for letters in (left.letters, left.malformed_letters)
            if letters
        ]
        if not frames:
            return
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
        expect = entry.expect if rejected_counts.broken and rejected_counts.letters is None else {}
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
        return self._with_batch_columns(
            rejected.select(
                *position_values(columns, value),
                F.coalesce(F.col(REASON), expectation_reason).alias("reason"),
                F.when(F.col(REASON).isNull(), expectation_names).cast("string").alias("expectation"),
            ),
            name,
            batch_id,
        )

    def _parse_letters(self, spark: SparkSession, batch_id: int, name: str, letters: str | None) -> DataFrame:
        """Return dead letters that the batch itself handed over as a JSON array."""
        rows = spark.sql("SELECT 1").select(F.inline(F.from_json(F.lit(letters), KEPT)))
        return self._with_batch_columns(rows, name, batch_id)

    def _with_batch_columns(self, rejected: DataFrame, name: str, batch_id: int) -> DataFrame:
        """Add the columns that all dead letters of a batch share."""
        return rejected.select(
            F.lit(self.query).alias("query"),
            F.lit(name).alias("source"),
            *(F.col(column) for column in PLACE),
            F.col("reason"),
            F.lit(batch_id).cast("bigint").alias("batch_id"),
            F.current_timestamp().alias("at"),
            F.col("expectation"),
        )

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
        counts = RejectedCounts(
            malformed if letters.accepts_malformed(name) else 0, broken, (size or 0) + (broken_size or 0)
        )
        if broken and collects_dead_letters(letters.pipeline, name):
            if broken > MOST_LETTERS:
                raise MillstreamError(
                    f"{broken:,} rows of '{name}' break an expectation in one batch, and at most {MOST_LETTERS:,} of "
                    "rows that cannot be read again can become dead letters",
                    f"write 'otherwise: drop' or 'warn' in the expectations of '{name}' until its rows are right",
                )
            json_rows = str(metrics.get(metric_name(name)).get().getAs(LETTERS))
            counts = replace(counts, letters=json_rows)
        if counts.malformed:
            counts = replace(counts, malformed_letters=_handed_over(letters, metrics, name, counts.malformed))
        if counts.malformed or counts.broken:
            rejected[name] = counts
    return rejected


def _handed_over(letters: DeadLetters, metrics: Any, name: str, malformed: int) -> str | None:
    """Return the malformed records of a source as a JSON array, or None if the metric does not have all of them."""
    if malformed > MOST_MALFORMED or sum(origin.name == name for origin in letters.origins) != 1:
        return None
    values = metrics.get(source_metric_name(name)).get()
    if MALFORMED_LETTERS not in set(values.schema().fieldNames()):
        return None
    text = values.getAs(MALFORMED_LETTERS)
    return str(text) if text is not None and len(json.loads(text)) == malformed else None


def _count_and_size(metrics: Any, name: str, count: str, size: str) -> tuple[int, int]:
    """Return a metric's number of rows and their approximate size in bytes, or zeros if it is missing."""
    observed_row = metrics.get(name)
    if observed_row.isEmpty():
        return 0, 0
    values = observed_row.get()
    return int(values.getAs(count) or 0), int(values.getAs(size) or 0)
