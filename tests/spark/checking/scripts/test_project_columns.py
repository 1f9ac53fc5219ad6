"""Declarative pipelines whose columns are not known, and notebooks of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checking.scripts.declarative.check import check_project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult


def check_file(spark: SparkSession, file: Path, text: str) -> CheckResult:
    """Check a project of one file, which has no spec."""
    file.write_text(text)
    return check_project(spark, file)


FLOWS = """import dlt
from pyspark.sql import functions as F


@dlt.table
def berths():
    return spark.read.schema("imo STRING, berth STRING").json("s3://port/berths")


@dlt.table
def visits():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").load("s3://port/visits")


@dlt.table
def moored():
    named = spark.readStream.table("visits").join(dlt.read("berths"), "imo")
    return named.select("imo", F.col("berths.berth"), "master")


@dlt.table
def filled():
    visits = spark.readStream.table("visits")
    for name in visits.columns:
        visits = visits.withColumnRenamed(name, name.lower())
    columns = [F.length(name) for name in visits.columns if not name.startswith("_")]
    return visits.where(F.greatest(*columns) > 0)
"""


def test_columns_may_have_the_name_of_their_table_before_them_and_be_in_a_list(
    spark: SparkSession, tmp_path: Path
) -> None:
    checked = check_file(spark, tmp_path / "visits.py", FLOWS)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}, checked.findings
    assert {query.name: query.reason for query in checked.judged or ()} == dict.fromkeys(
        ("berths", "visits", "moored", "filled"), ""
    )


def test_a_notebook_that_is_run_again_is_read_as_in_its_first_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    cells = [
        "import dlt\nimport harbour_plots\n",
        "rows = dlt.read('ships').toPandas()\nprint(rows['flag'])\n",
        "@dlt.table\ndef ships():\n    return spark.readStream.format('rate').load()\n",
    ]
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]

    checked = check_file(spark, tmp_path / "report.ipynb", json.dumps({"cells": code}))

    assert {str(finding.severity) for finding in checked.findings} == {"info"}, checked.findings
    assert [query.name for query in checked.judged or ()] == ["ships"]
