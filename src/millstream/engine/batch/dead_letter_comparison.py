"""Compare the dead letters of a pipeline with the malformed records of its complete input."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.engine.batch.sink_comparison import Verdict, compare_by_row
from millstream.frames.dead_letter_columns import position_values, raw_columns
from millstream.frames.decode import CORRUPT, REASON, decode_rows
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import OnMalformed
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.engine.batch.row_hash import Rows
    from millstream.engine.batch.sink_comparison import Key
    from millstream.pipeline.model import Pipeline, SourceEntry


def compare_dead_letters(spark: SparkSession, pipeline: Pipeline) -> list[Verdict]:
    """Compare the dead letters of each query with the malformed records of its sources, by position and value.

    Leaves out records without a position, and rows that broke an expectation.
    """
    letters: defaultdict[tuple[str, str], Rows] = defaultdict(Counter)
    for letter in pipeline.letters.all():
        if letter.expectation is None:
            letters[letter.query, letter.source].update(_keys(letter))
    malformed = {
        name: _find_malformed(spark, entry)
        for name, entry in pipeline.sources.items()
        if entry.on_malformed is OnMalformed.DEAD_LETTER and not entry.static
    }
    verdicts, graph = [], PipelineGraph.of(pipeline)
    for query in pipeline.queries:
        for name in (source for source in graph.sources_of(query) if source in malformed):
            stored, expected = letters[query, name], malformed[name]
            if stored or expected:
                # A dead letter is written with the number of its batch, whatever the guarantee of the sinks.
                mode, guarantee = OutputMode.APPEND.value, Guarantee.EXACTLY_ONCE.value
                verdict = Verdict(query, f"dead letters of {name}", mode, guarantee, rows=stored.total())
                compare_by_row(verdict, stored, expected, expected)
                verdicts.append(verdict)
    return verdicts


def _find_malformed(spark: SparkSession, entry: SourceEntry) -> Rows:
    """Count the malformed records of the whole input of a source by position and value."""
    raw = entry.source.read(spark, static=True, schema=entry.ddl)
    columns = raw_columns(entry, raw.columns)
    text = F.encode(F.col(CORRUPT), "UTF-8") if CORRUPT in raw.columns else F.lit(None)
    places = position_values(columns, None if "value" in columns else text, F.col)
    rows = decode_rows(entry, raw).where(F.col(REASON).isNotNull()).select(*places)
    return Counter(key for row in rows.collect() for key in _keys(row))


def _keys(record: Any) -> list[Key]:
    """Return the position and the value of a record, or nothing without a position."""
    if record.offset is None and record.file is None:
        return []
    value = None if record.value is None else bytes(record.value).decode(errors="replace")
    parts = (record.topic, record.partition, record.offset, record.file, value)
    return [tuple(str(part) for part in parts if part is not None)]
