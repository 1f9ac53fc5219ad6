"""Spark settings that switch off what keeps results right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# What each of them guards; the names are those of SQLConf in Spark 4.2.
_GUARDS = {
    "spark.sql.streaming.unsupportedOperationCheck": "refuses queries whose results would be wrong",
    "spark.sql.streaming.stateStore.stateSchemaCheck": "refuses state of another shape than the query's",
    "spark.sql.streaming.verifyMetadataExists.enabled": "refuses a checkpoint that lost its identity",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "refuses a foreign folder as a checkpoint",
    "spark.sql.streaming.checkUnfinishedRepartition.enabled": "refuses state that was half repartitioned",
    "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled": "keeps rows with null keys",
    "spark.sql.streaming.stateStore.commitValidation.enabled": "refuses a batch whose state is not whole",
    "spark.sql.streaming.validateEventTimeWatermarkColumn": "refuses a watermark on what is no time",
}
_PREFIXES = {
    "spark.sql.streaming.statefulOperator.": "keeps chained stateful operators correct",
    # Set for a session they stand for every table that it writes: a later batch would be taken for one it holds.
    "spark.databricks.delta.write.txn": "is the batch's number, by which a table knows what it has",
}


def check(facts: Facts) -> Iterator[Finding]:
    """Any value: the default is the only one under which guarantees hold."""
    for key in facts.pipeline.spark:
        guards = _GUARDS.get(key) or next(
            (why for start, why in _PREFIXES.items() if key.startswith(start)), None
        )
        if guards:
            yield CODE.error(
                f"'{key}' may not be set",
                facts.places.key("spark", key),
                why=f"it {guards}",
                fix="remove the line",
            )
