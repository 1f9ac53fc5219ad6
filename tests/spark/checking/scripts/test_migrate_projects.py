"""Projects of declarative pipelines become projects that check without an error; what is not moved has its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.check import check
from millstream.checking.scripts.migration.flow_migration import migrate_project
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.migration.project_files import MigratedProject
    from millstream.pipeline.model import Pipeline

SPEC = "name: shop\nstorage: file:///lake/shop\nlibraries: [{glob: {include: 'code/**'}}]\n"
PYTHON = '''from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
schema = "id INT, kind STRING, amount DOUBLE, at TIMESTAMP"


def cleaned(frame):
    return frame.where("amount > 0")


@dp.table
def orders():
    """Orders as they arrive."""
    return cleaned(spark.readStream.schema(schema).json("in/orders"))


@dp.materialized_view
def by_kind():
    return spark.read.table("orders").groupBy("kind").agg(F.count("*").alias("n"))


@dp.materialized_view
def largest():
    return spark.read.table("orders").orderBy(F.desc("amount")).limit(3)


dp.create_streaming_table("all_orders")


@dp.append_flow(target="all_orders")
def first():
    return spark.readStream.table("orders")


@dp.append_flow(target="all_orders")
def older():
    return spark.readStream.schema(schema).json("in/older")


dp.create_sink("topic", "kafka", {"kafka.bootstrap.servers": "b:9092", "topic": "orders"})


@dp.append_flow(target="topic")
def published():
    return spark.readStream.table("all_orders").selectExpr("CAST(id AS STRING) AS value")
'''
SQL = """-- Totals, and one table that comes from elsewhere.
CREATE STREAMING TABLE sales AS
SELECT id, amount FROM STREAM(default.orders) WHERE kind = 'sale';

CREATE MATERIALIZED VIEW total AS SELECT sum(amount) AS total FROM sales;

CREATE STREAMING TABLE foreign_sales AS
SELECT * FROM STREAM prod.shop.sales;
"""
CHANGES = """from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.active()


@dp.temporary_view
def changes():
    return spark.readStream.schema("id INT, name STRING, version BIGINT, op STRING").json("in/changes")


dp.create_streaming_table("users")
dp.create_auto_cdc_flow(
    target="users", source="changes", keys=["id"], sequence_by=col("version"),
    apply_as_deletes=col("op") == "d", except_column_list=["op"], stored_as_scd_type=1,
)
"""
DLT = """import dlt


@dlt.view
@dlt.expect("has a kind", "kind IS NOT NULL")
def raw():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .schema("id INT, kind STRING").load("/mnt/landing"))


@dlt.table(name="bronze")
@dlt.expect_or_drop("positive", "id > 0")
def cleaned():
    return dlt.read_stream("raw")
"""


def migrate(spark: SparkSession, folder: Path, files: dict[str, str], more: str = "") -> MigratedProject:
    """The project that comes of one with these files, written into `folder/project`."""
    for name, text in files.items():
        (folder / "code").mkdir(exist_ok=True)
        (folder / "code" / name).write_text(text)
    (folder / "spark-pipeline.yml").write_text(SPEC + more)
    project = migrate_project(spark, folder / "spark-pipeline.yml")
    (folder / "project").mkdir()
    for name, text in project.files.items():
        (folder / "project" / name).write_text(text)
    return project


def checked(spark: SparkSession, folder: Path) -> Pipeline:
    """The pipeline of the project, which the check has found without an error."""
    loaded = load_spec(folder / "project" / "pipeline.yml", {})
    findings = check(loaded, spark).findings
    assert [finding.message for finding in findings if str(finding.severity) == "error"] == []
    assert loaded.pipeline is not None
    return loaded.pipeline


def test_tables_in_python_and_sql_become_queries_and_the_rest_is_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = migrate(spark, tmp_path, {"a.py": PYTHON, "b.sql": SQL})

    pipeline = checked(spark, tmp_path)
    modes = {name: str(query.output_mode) for name, query in pipeline.queries.items()}
    assert modes == {
        "orders": "append",
        "by_kind": "complete",
        "all_orders": "append",
        "topic": "append",
        "sales": "append",
        "total": "complete",
    }
    assert pipeline.views["all_orders"].sql is not None
    assert "UNION ALL" in pipeline.views["all_orders"].sql
    assert [line.partition(": ")[0] for line in project.left] == [
        f"materialized view 'largest' (line 24 of {tmp_path}/code/a.py)",
        f"streaming table 'foreign_sales' (line 7 of {tmp_path}/code/b.sql)",
    ]
    assert "it is a batch query that" in project.left[0]


@pytest.mark.whole
def test_an_automatic_flow_of_changes_becomes_a_sink_with_cdc(spark: SparkSession, tmp_path: Path) -> None:
    migrate(spark, tmp_path, {"a.py": CHANGES})

    (entry,) = checked(spark, tmp_path).queries["users"].to
    assert entry.sink.model_dump()["cdc"] == {
        "keys": ("id",),
        "sequence_by": "version",
        "apply_as_deletes": "op = 'd'",
        "except_column_list": ("op",),
        "stored_as_scd_type": 1,
    }


@pytest.mark.whole
def test_expectations_and_auto_loader_of_databricks_are_moved(spark: SparkSession, tmp_path: Path) -> None:
    project = migrate(spark, tmp_path, {"a.py": DLT})

    pipeline = checked(spark, tmp_path)
    (warned,) = pipeline.views["raw"].expect.values()
    (dropped,) = pipeline.views["bronze"].expect.values()
    assert (warned.that, str(warned.otherwise)) == ("kind IS NOT NULL", "warn")
    assert (dropped.that, str(dropped.otherwise)) == ("id > 0", "drop")
    assert any("Auto Loader became a source of files" in note for note in project.differences)


FLOWS = """
import dlt

dlt.create_streaming_table(
    "bronze",
    expect_all_or_drop={"id > 0": "id > 0", "id < 0": "id < 0"},
    expect_all={"has a kind": "kind IS NOT NULL"},
)


@dlt.view
def raw():
    return spark.readStream.schema("id INT, kind STRING").json("/landing")
"""
FLOW = """

@dlt.append_flow(target="bronze")
def flow_NUMBER():
    return dlt.read_stream("raw")
"""


@pytest.mark.parametrize("flows", [1, 2])
def test_expectations_in_the_settings_of_a_table_belong_to_the_view_of_its_flows(
    spark: SparkSession, tmp_path: Path, flows: int
) -> None:
    text = FLOWS + "".join(FLOW.replace("NUMBER", str(number)) for number in range(flows))

    migrate(spark, tmp_path, {"a.py": text})

    expected = checked(spark, tmp_path).views["bronze"].expect
    assert {name: (entry.that, str(entry.otherwise)) for name, entry in expected.items()} == {
        "id_0": ("id > 0", "drop"),
        "id_0_2": ("id < 0", "drop"),
        "has_a_kind": ("kind IS NOT NULL", "warn"),
    }


RATES = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession


@dp.temporary_view
def rates():
    return SparkSession.active().readStream.format("rate").load().selectExpr("value", "value AS id")
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("CREATE STREAMING TABLE t AS SELECT * FROM STREAM a JOIN b USING (id);", "joins a stream with the table"),
        ("CREATE STREAMING TABLE t AS SELECT id FROM STREAM a WHERE id IN (SELECT id FROM total);", "rows change"),
        ("CREATE MATERIALIZED VIEW t AS SELECT 1 AS id;", "it reads no stream"),
        ("CREATE MATERIALIZED VIEW t AS SELECT id FROM a WHERE id > unix_date(current_date());", "by the clock"),
        ("CREATE MATERIALIZED VIEW t AS SELECT a.id FROM a JOIN b ON a.id > year(now());", "by the clock"),
        ("CREATE STREAMING TABLE t;", "no flow writes it"),
    ],
)  # fmt: skip
def test_a_flow_that_no_stream_can_replace_is_listed_with_its_line(
    spark: SparkSession, tmp_path: Path, sql: str, reason: str
) -> None:
    tables = (
        "CREATE STREAMING TABLE a AS SELECT value AS id FROM STREAM rates;\n"
        "CREATE STREAMING TABLE b AS SELECT value AS id FROM STREAM rates;\n"
        "CREATE MATERIALIZED VIEW total AS SELECT max(id) AS id FROM a;\n"
    )

    project = migrate(spark, tmp_path, {"a.py": RATES, "b.sql": tables + sql})

    (left,) = project.left
    assert f"'t' (line 4 of {tmp_path}/code/b.sql)" in left
    assert reason in left


def test_an_expectation_with_a_setting_that_is_not_known_is_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Only Databricks has settings in SQL.
    (tmp_path / "a.py").write_text(RATES.replace("from pyspark import pipelines as dp", "import dlt as dp"))
    (tmp_path / "b.sql").write_text(
        "CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT c EXPECT (id > ${least}) ON VIOLATION DROP ROW)"
        " AS SELECT id FROM STREAM(rates);"
    )

    (left,) = migrate_project(spark, tmp_path).left

    assert "its expectation 'c' has a setting that is not known" in left


@pytest.mark.parametrize(
    ("more", "is_noted"),
    [("", True), ("configuration: {spark.sql.session.timeZone: Europe/Berlin}\n", False)],
    ids=["zone of the machine", "zone of the project"],
)
def test_days_are_noted_unless_the_project_sets_their_time_zone(
    spark: SparkSession, tmp_path: Path, more: str, *, is_noted: bool
) -> None:
    sql = "CREATE STREAMING TABLE days AS SELECT to_date(timestamp_seconds(id)) AS day FROM STREAM rates;\n"

    project = migrate(spark, tmp_path, {"a.py": RATES, "b.sql": sql}, more)

    assert project.left == []
    assert any("times without a zone" in note for note in project.differences) is is_noted


@pytest.mark.parametrize(
    ("clause", "setting"),
    [
        ("APPLY AS TRUNCATE WHEN id < 0 SEQUENCE BY id", "apply_as_truncates"),
        ("IGNORE NULL UPDATES SEQUENCE BY id", "ignore_null_updates"),
        ("COLUMNS (id) SEQUENCE BY id", "column_list"),
        ("SEQUENCE BY id COLUMNS id STORED AS SCD TYPE 1", "column_list"),
        ("SEQUENCE BY id STORED AS SCD TYPE 2 TRACK HISTORY ON (id)", "track_history_column_list"),
        ("WHERE id > 0", "no source, keys or sequence"),
    ],
)
def test_an_auto_cdc_statement_with_a_clause_that_no_sink_has_is_listed(
    spark: SparkSession, tmp_path: Path, clause: str, setting: str
) -> None:
    sql = (
        "CREATE STREAMING TABLE a AS SELECT id FROM STREAM rates;\n"
        f"CREATE STREAMING TABLE t; AUTO CDC INTO t FROM STREAM a KEYS (id) {clause};"
    )

    project = migrate(spark, tmp_path, {"a.py": RATES, "b.sql": sql})

    (left,) = project.left
    assert f"'t' (line 2 of {tmp_path}/code/b.sql)" in left
    assert setting in left
