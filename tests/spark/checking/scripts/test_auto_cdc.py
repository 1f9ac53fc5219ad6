"""Flows of AUTO CDC in declarative pipelines have the columns of their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.declarative.check import check_project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.diagnostics.finding import Finding

SPEC = "name: small\nstorage: file:///lake/small\nlibraries: [{glob: {include: flows.py}}]\n"


def checked_python(spark: SparkSession, folder: Path, text: str) -> list[Finding]:
    """What a project of one file of Python gives, beside what is said of the file's queries."""
    (folder / "spark-pipeline.yml").write_text(SPEC)
    (folder / "flows.py").write_text(HEAD + text)
    return check_project(spark, folder / "spark-pipeline.yml").findings


HEAD = """from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.temporary_view
def changes():
    rows = spark.readStream.format("rate").load()
    return rows.selectExpr("value AS id", "timestamp AS at", "'u' AS op")

"""
CHANGES = """dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="changes", keys=["KEY"], sequence_by="at",
    apply_as_deletes=F.expr("op = 'd'"), except_column_list=["op"], stored_as_scd_type=2)

@dp.table
def deleted():
    return spark.readStream.table("latest").where("__END_AT IS NOT NULL").select("id", "COLUMN")
"""


def test_an_auto_cdc_flow_has_the_columns_of_its_source(spark: SparkSession, tmp_path: Path) -> None:
    assert checked_python(spark, tmp_path, CHANGES.replace("KEY", "id").replace("COLUMN", "__START_AT")) == []


@pytest.mark.parametrize(
    ("key", "column", "flow"), [("number", "at", "latest"), ("id", "op", "deleted")], ids=["key", "left out"]
)
def test_a_column_that_an_auto_cdc_flow_does_not_have_is_named(
    spark: SparkSession, tmp_path: Path, key: str, column: str, flow: str
) -> None:
    findings = checked_python(spark, tmp_path, CHANGES.replace("KEY", key).replace("COLUMN", column))

    assert any(
        finding.code == "MS118"
        and f"flow '{flow}': A column" in finding.message
        and (column if flow == "deleted" else key) in finding.message
        for finding in findings
    ), findings
