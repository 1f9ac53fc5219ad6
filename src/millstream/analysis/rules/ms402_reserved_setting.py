"""Spark settings that switch off checks that keep results correct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# The purpose of each setting; the names are those of SQLConf in Spark 4.2.
_GUARDS = {
    "spark.sql.streaming.unsupportedOperationCheck": "refuses queries whose results would be wrong",
    "spark.sql.streaming.stateStore.stateSchemaCheck": "refuses state whose schema differs from the query's",
    "spark.sql.streaming.verifyMetadataExists.enabled": "refuses a checkpoint without its metadata",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "refuses a non-empty folder as a new checkpoint",
    "spark.sql.streaming.checkUnfinishedRepartition.enabled": "refuses state after an unfinished repartition",
    "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled": "keeps rows with null keys",
    "spark.sql.streaming.stateStore.commitValidation.enabled": "refuses a batch whose state is incomplete",
    "spark.sql.streaming.validateEventTimeWatermarkColumn": "refuses a watermark on a column that is not a timestamp",
}
_PREFIXES = {
    "spark.sql.streaming.statefulOperator.": "keeps chained stateful operators correct",
    # A session-wide value applies to every table: Delta would skip a later batch as already written.
    "spark.databricks.delta.write.txn": "contains the batch id, by which a table recognises a repeated batch",
}


def check(facts: Facts) -> Iterator[Finding]:
    """Report any value, because the guarantees are valid only with the default."""
    for key in facts.pipeline.spark:
        purpose = _GUARDS.get(key) or next(
            (purpose_of_prefix for prefix, purpose_of_prefix in _PREFIXES.items() if key.startswith(prefix)),
            None,
        )
        if purpose:
            yield CODE.error(
                f"'{key}' may not be set",
                facts.places.key("spark", key),
                why=f"it {purpose}",
                fix="remove the line",
            )
