"""The settings that a checkpoint's record stores, and the values that a spec gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spark.settings import default_settings, to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Spark writes these into each offset file, and they take precedence over the session's (OffsetSeqMetadata, 4.2).
PINNED = (
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
    "spark.sql.streaming.stateStore.encodingFormat",
    "spark.sql.streaming.multipleWatermarkPolicy",
    "spark.sql.streaming.aggregation.stateFormatVersion",
    "spark.sql.streaming.join.stateFormatVersion",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion",
    "spark.sql.streaming.statefulOperator.useStrictDistribution",
)
# These change results just as much, but Spark does not record them.
UNPINNED = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.adaptive.enabled",
    "spark.sql.streaming.noDataMicroBatches.enabled",
    "spark.sql.streaming.checkpointFileManagerClass",
)
# The values of those that neither a spec nor Millstream sets (SQLConf, 4.2). A session reports only what is set.
SPARK_DEFAULTS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion": "5",
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.join.stateFormatVersion": "2",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
}


def effective_settings(conf: Mapping[str, object], names: Iterable[str]) -> dict[str, str]:
    """Return the values that a run with a spec's settings `conf` uses: the spec's, else ours, else Spark's."""
    own = {name: to_text(value) for name, value in conf.items()}
    values = {**SPARK_DEFAULTS, **default_settings(conf), **own}
    return {name: values[name] for name in names if name in values}
