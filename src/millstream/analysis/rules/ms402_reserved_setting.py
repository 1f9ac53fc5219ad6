"""Spark settings switch off checks that keep results correct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.job_settings import JobSettings
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# What each setting achieves with its default value; the names are those of SQLConf in Spark 4.2.
_GUARDS = {
    "spark.sql.streaming.unsupportedOperationCheck": "Spark refuses queries whose results would be wrong",
    "spark.sql.streaming.stateStore.stateSchemaCheck": "Spark refuses state whose schema differs from the query's",
    "spark.sql.streaming.verifyMetadataExists.enabled": "Spark refuses a checkpoint without its metadata",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "Spark requires an empty folder for a checkpoint",
    "spark.sql.streaming.checkUnfinishedRepartition.enabled": "Spark refuses state after an unfinished repartition",
    "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled": "Spark keeps rows with NULL keys",
    "spark.sql.streaming.stateStore.commitValidation.enabled": "Spark refuses a batch whose state is incomplete",
    "spark.sql.streaming.validateEventTimeWatermarkColumn": "Spark accepts only a timestamp column for a watermark",
}
_PREFIXES = {
    "spark.sql.streaming.statefulOperator.": "Spark keeps chained stateful operators correct",
    # A session-wide value applies to every table: Delta would skip a later batch as already written.
    "spark.databricks.delta.write.txn": "a Delta table recognises a repeated batch by the batch id in it",
}
# The default is `true` for all of them except these: `false`, and no value at all.
_OFF = "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled"
_UNSET = "spark.databricks."


def check_settings(settings: JobSettings) -> Iterator[Finding]:
    """Report any value but the default, because the guarantees are valid only with the default."""
    for setting in settings.spark:
        key = setting.key
        is_default = setting.value.lower() == ("false" if key == _OFF else "true")
        if is_default and not key.startswith(_UNSET):
            continue
        purpose = _GUARDS.get(key) or next(
            (purpose_of_prefix for prefix, purpose_of_prefix in _PREFIXES.items() if key.startswith(prefix)),
            None,
        )
        if purpose:
            yield CODE.error(
                f"'{key}' may not be set",
                setting.span,
                why=f"it must keep its default value, so that {purpose}",
                fix="remove this setting",
            )
