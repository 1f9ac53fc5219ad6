"""Settings that must keep their default value (MS402)."""

from __future__ import annotations

import pytest

from millstream.analysis.job_settings import JobSettings, SparkSetting
from millstream.analysis.rules.ms402_reserved_setting import check_settings

SKIPS_NULLS = "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled"


@pytest.mark.parametrize(
    ("key", "value", "is_reported"),
    [
        ("spark.sql.streaming.unsupportedOperationCheck", "false", True),
        ("spark.sql.streaming.unsupportedOperationCheck", "True", False),
        ("spark.sql.streaming.statefulOperator.checkCorrectness.enabled", "false", True),
        ("spark.sql.streaming.statefulOperator.checkCorrectness.enabled", "true", False),
        (SKIPS_NULLS, "true", True),
        (SKIPS_NULLS, "false", False),
        # An application of this name would have one batch id for all tables.
        ("spark.databricks.delta.write.txnAppId", "true", True),
        ("spark.databricks.delta.write.txnVersion.autoReset.enabled", "true", True),
        ("spark.sql.shuffle.partitions", "4", False),
    ],
)
def test_each_value_but_the_default_is_reported(key: str, value: str, is_reported: bool) -> None:
    findings = list(check_settings(JobSettings(spark=(SparkSetting(key, value, None),))))

    assert [finding.code for finding in findings] == ["MS402"] * is_reported
