"""Scripts of usual shapes become projects that check without an error, and what is not moved is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.check import check
from millstream.checking.scripts.migration.migrate import migrate_script
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.migration.project_files import MigratedProject

HEAD = (
    "from pyspark.sql import SparkSession\nfrom pyspark.sql import functions as F\n"
    "spark = SparkSession.builder.getOrCreate()\n"
)
KAFKA = (
    'raw = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092")'
    '.option("subscribe", "orders").option("maxOffsetsPerTrigger", "1000").load())\n'
    'orders = raw.select(F.from_json(F.col("value").cast("string"), "id INT, user STRING, at TIMESTAMP, '
    '_corrupt_record STRING").alias("o")).select("o.*")\n'
)
FILES = 'views = spark.readStream.schema("page STRING, user STRING, at TIMESTAMP").json("in/views")\n'
DELTA = '.format("delta").option("checkpointLocation", "cp/a").start("lake/a")\n'
SHAPES = {
    "kafka_to_delta": KAFKA + f"orders.writeStream{DELTA}",
    "windows": FILES
    + 'counts = views.withWatermark("at", "10 minutes").groupBy(F.window("at", "1 hour"), "page").count()\n'
    + f'hours = counts.select(F.col("window.start").alias("hour"), "page", "count")\nhours.writeStream{DELTA}',
    "stream_join": FILES
    + 'users = spark.read.schema("user STRING, country STRING").csv("in/users")\n'
    + f'views.join(users, "user").writeStream.trigger(availableNow=True){DELTA}',
    "upsert": KAFKA
    + "from delta.tables import DeltaTable\n"
    + "def upsert(batch, number):\n"
    + "    table = DeltaTable.forPath(spark, 'lake/orders')\n"
    + "    (table.alias('t').merge(batch.alias('s'), 't.id = s.id')\n"
    + "     .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute())\n"
    + "orders.writeStream.foreachBatch(upsert).option('checkpointLocation', 'cp/o').start()\n",
    "own_function": FILES
    + "def store(batch, number):\n    batch.write.mode('overwrite').parquet(f'out/{number}')\n"
    + "views.writeStream.foreachBatch(store).option('checkpointLocation', 'cp/o').start()\n",
    "several_queries": FILES
    + f'first = views.where("page IS NOT NULL").writeStream{DELTA}'
    + 'second = views.writeStream.format("parquet").option("checkpointLocation", "cp/b").start("lake/b")\n',
    "sql": FILES
    + 'views.createOrReplaceTempView("views")\nnamed = spark.sql("SELECT page, user FROM views WHERE user > \'b\'")\n'
    + f"named.writeStream{DELTA}",
}


def migrated(spark: SparkSession, folder: Path, text: str) -> MigratedProject:
    """The project of a script, written into `folder/project`."""
    script = folder / "job.py"
    script.write_text(HEAD + text)
    project = migrate_script(spark, script)
    (folder / "project" / "in" / "users").mkdir(parents=True)
    for name, content in project.files.items():
        (folder / "project" / name).write_text(content)
    assert script.read_text() == HEAD + text
    return project


@pytest.mark.parametrize("shape", SHAPES)
def test_a_script_of_a_usual_shape_becomes_a_project_without_errors(
    spark: SparkSession, tmp_path: Path, shape: str
) -> None:
    project = migrated(spark, tmp_path, SHAPES[shape])

    checked = check(load_spec(tmp_path / "project" / "pipeline.yml", {}), spark)

    assert [finding.message for finding in checked.findings if str(finding.severity) == "error"] == []
    assert project.left == []
    assert len(checked.queries) == SHAPES[shape].count("writeStream")


def test_a_merge_becomes_a_sink_with_its_key(spark: SparkSession, tmp_path: Path) -> None:
    project = migrated(spark, tmp_path, SHAPES["upsert"])

    assert "merge_on:\n      - id" in project.files["pipeline.yml"].replace("        - id", "      - id")
    assert "upsert() became merge_on of a Delta sink" in project.files["MIGRATION.md"]


def test_what_is_not_moved_is_listed_with_its_line_and_its_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = FILES + 'unknown = spark.readStream.table("shop.orders")\n' + f"unknown.writeStream{DELTA}"
    text += 'views.writeStream.format("iceberg").option("checkpointLocation", "c").toTable("a.b")\n'

    project = migrated(spark, tmp_path, text)

    assert project.moved == []
    assert "pipeline.yml" not in project.files
    page = project.files["MIGRATION.md"]
    assert "query 'query 1' (line 6): table shop.orders is not known" in page
    assert "query 'query 2' (line 7): there is no sink kind for iceberg" in page


def test_a_query_without_a_name_is_called_like_its_target(spark: SparkSession, tmp_path: Path) -> None:
    upsert = "".join(line for line in SHAPES["upsert"].splitlines(keepends=True)).replace(KAFKA, "")
    project = migrated(
        spark,
        tmp_path,
        SHAPES["kafka_to_delta"] + upsert + f"orders.writeStream{DELTA}".replace("lake/a", "s3/a/"),
    )

    loaded = load_spec(tmp_path / "project" / "pipeline.yml", {})
    assert loaded.pipeline is not None
    assert list(loaded.pipeline.queries) == ["a", "orders", "a_query"]
    assert len(project.moved) == 3


RATE = 'rates = spark.readStream.format("rate").load()\n'
ZONE = 'spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")\n'


@pytest.mark.parametrize(
    ("text", "is_noted"),
    [
        (RATE + f'rates.select("value").writeStream{DELTA}', False),
        (RATE + f'rates.select(F.to_date("timestamp").alias("day")).writeStream{DELTA}', True),
        (RATE + f'rates.selectExpr("CAST(timestamp AS DATE) AS day").writeStream{DELTA}', True),
        (ZONE + RATE + f'rates.select(F.to_date("timestamp").alias("day")).writeStream{DELTA}', False),
        (FILES + f"views.writeStream{DELTA}", True),
        (KAFKA + f"orders.writeStream{DELTA}", True),
    ],
)
def test_times_that_depend_on_the_zone_of_a_machine_are_noted(
    spark: SparkSession, tmp_path: Path, text: str, *, is_noted: bool
) -> None:
    project = migrated(spark, tmp_path, text)

    noted = [note for note in project.differences if note.startswith("times without a zone")]
    assert len(noted) == is_noted
