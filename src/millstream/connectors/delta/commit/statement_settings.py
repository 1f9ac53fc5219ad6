"""Give one SQL statement the number and the metadata of a batch, as a write gets them as options."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Session settings that give a statement what a write gets as options.
_SETTINGS = {
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
}


@contextmanager
def with_settings(spark: SparkSession, commit_options: dict[str, str]) -> Iterator[None]:
    """Set session settings for one statement; a batch id left behind would turn later writes into no-ops."""
    metadata_setting = _SETTINGS["userMetadata"]
    before: str | None = spark.conf.get(metadata_setting, None)
    try:
        for name, value in commit_options.items():
            spark.conf.set(_SETTINGS[name], value)
        yield
    finally:
        for setting in _SETTINGS.values():
            spark.conf.unset(setting)
        if before is not None:
            spark.conf.set(metadata_setting, before)
