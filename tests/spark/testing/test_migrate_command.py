"""`millstream migrate` as a person types it: tests that pass, views in SQL, and a page that says so."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]

JOB = """from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
views = spark.readStream.schema("page STRING, user STRING, at TIMESTAMP").json("in/views")
named = views.where(F.col("page").isNotNull()).select("page", F.upper("user").alias("who"))
named.writeStream.format("delta").option("checkpointLocation", "cp/a").start("lake/named")
hours = views.withWatermark("at", "10 minutes").groupBy(F.window("at", "1 hour"), "page").count()
hours.writeStream.format("delta").option("checkpointLocation", "cp/b").start("lake/hours")
spark.streams.awaitAnyTermination()
"""
TABLES = """from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.table
def orders():
    return spark.readStream.format("rate").load().withColumnRenamed("value", "id")


@dp.materialized_view
def newest():
    return spark.read.table("orders").orderBy("id")
"""


def millstream(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end."""
    command = [sys.executable, "-m", "millstream", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_migrated_script_has_tests_that_pass_and_sql_where_it_can(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)

    migrated = millstream(tmp_path, "migrate", "job.py", "-o", "shop")
    tested = millstream(tmp_path / "shop", "test", "--json")

    assert migrated.returncode == 0, migrated.stderr
    tests = json.loads(tested.stdout)["tests"]
    assert {test["name"].split()[1]: test["outcome"] for test in tests} == {
        "named": "passed",
        "hours": "passed",
    }
    assert "named: |" in (tmp_path / "shop" / "pipeline.yml").read_text()
    page = (tmp_path / "shop" / "MIGRATION.md").read_text()
    assert "- `named`: SQL" in page
    assert "- `hours`: withWatermark() has no SQL here" in page
    assert (
        "tests/hours.yml`: a batch run over the same input gives the same rows, without the late row" in page
    )


def test_a_migrated_declarative_project_has_tests_and_lists_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "tables.py").write_text(TABLES)
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: shop\nstorage: file:///lake\nlibraries: [{glob: {include: tables.py}}]\n"
    )

    migrated = millstream(tmp_path, "migrate", "spark-pipeline.yml", "-o", "moved")
    tested = millstream(tmp_path / "moved", "test", "--json")

    assert migrated.returncode == 0, migrated.stderr
    assert [test["outcome"] for test in json.loads(tested.stdout)["tests"]] == ["passed"]
    assert "not moved: materialized view 'newest' (line 12 of tables.py)" in migrated.stderr
