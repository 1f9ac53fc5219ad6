"""Scripts of usual shapes and the projects that were written from them give the same tables over the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.check import check
from millstream.checking.scripts.migration.migrate import migrate_script
from millstream.pipeline.spec_file import load_spec
from millstream.proof.migration.prove_migration import prove_migration

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.proof.migration.verdict import QueryVerdict

pytestmark = pytest.mark.usefixtures("small_batches", "three_batches")

HEAD = (
    "from pyspark.sql import SparkSession\nfrom pyspark.sql import functions as F\n"
    "spark = SparkSession.builder.getOrCreate()\n"
)
KAFKA = (
    'raw = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092")'
    '.option("subscribe", "orders").option("startingOffsets", "earliest").load())\n'
    'orders = raw.select(F.from_json(F.col("value").cast("string"), "id INT, user STRING, kind STRING, '
    'amount DOUBLE, at TIMESTAMP").alias("o")).select("o.*")\n'
)
FILES = 'views = spark.readStream.schema("page STRING, user STRING, at TIMESTAMP").json("in/views")\n'
DELTA = '.format("delta").option("checkpointLocation", "cp/a").start("lake/a")\n'
UPSERT = (
    "from delta.tables import DeltaTable\n"
    "def upsert(batch, number):\n"
    "    table = DeltaTable.forPath(spark, 'lake/orders')\n"
    "    (table.alias('t').merge(batch.alias('s'), 't.id = s.id')\n"
    "     .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute())\n"
)
SHAPES = {
    "kafka_to_delta": KAFKA + f"orders.where(\"kind = 'sale'\").writeStream{DELTA}",
    "tumbling_windows": FILES
    + 'counts = views.withWatermark("at", "10 minutes").groupBy(F.window("at", "1 hour"), "page").count()\n'
    + f'hours = counts.select(F.col("window.start").alias("hour"), "page", "count")\nhours.writeStream{DELTA}',
    "sliding_windows_updated": KAFKA
    + 'sums = (orders.withWatermark("at", "20 minutes").groupBy(F.window("at", "1 hour", "30 minutes"), "kind")'
    + '.agg(F.sum("amount").alias("total")))\n'
    + 'sums.writeStream.outputMode("update").format("console").start()\n',
    "join_with_a_table": FILES
    + 'users = spark.read.schema("user STRING, country STRING").csv("in/users")\n'
    + f'views.join(users, "user").writeStream.trigger(availableNow=True){DELTA}',
    "join_of_two_streams": FILES
    + 'clicks = spark.readStream.schema("user STRING, link STRING, clicked_at TIMESTAMP").json("in/clicks")\n'
    + 'joined = views.withWatermark("at", "1 hour").alias("v").join(clicks.withWatermark("clicked_at", "1 hour")'
    + '.alias("c"), F.expr("v.user = c.user AND clicked_at BETWEEN at AND at + INTERVAL 30 MINUTES"))\n'
    + f'joined.select("page", "link", "at").writeStream{DELTA}',
    "upsert": KAFKA
    + UPSERT
    + "newest = orders.where('user = 1')\n"
    + "orders.groupBy('id').agg(F.max('amount').alias('amount')).writeStream.outputMode('update')"
    + ".foreachBatch(upsert).option('checkpointLocation', 'cp/o').start()\n",
    "changes": KAFKA
    + UPSERT.replace("batch.alias('s')", "batch.orderBy(F.desc('at')).dropDuplicates(['id']).alias('s')")
    .replace(
        ".whenMatchedUpdateAll()",
        ".whenMatchedDelete(\"s.kind = 'gone'\").whenMatchedUpdateAll('s.at > t.at')",
    )
    .replace("InsertAll()", "InsertAll(\"s.kind != 'gone'\")")
    + "orders.writeStream.foreachBatch(upsert).option('checkpointLocation', 'cp/o').start()\n",
    "own_function": FILES
    + "import logging\nfrom pyspark.sql.functions import max\n"
    + "log, target = logging.getLogger('job'), 'out/all'\n"
    + "def store(batch, number):\n"
    + "    log.info('batch %s', number)\n"
    + "    batch.write.mode('append').parquet(target)\n"
    + "    batch.groupBy('page').agg(max('user')).write.format('jdbc').option('url', 'jdbc:x')"
    + ".option('dbtable', 'pages').mode('append').save()\n"
    + "views.writeStream.foreachBatch(store).option('checkpointLocation', 'cp/o').start()\n",
    "two_queries": FILES
    + f'first = views.where("page IS NOT NULL").writeStream{DELTA}'
    + 'second = views.groupBy("user").count().writeStream.outputMode("complete").format("memory")'
    + '.queryName("users").start()\n',
    "sql": FILES
    + 'views.createOrReplaceTempView("views")\nnamed = spark.sql("SELECT page, user FROM views WHERE user > \'1\'")\n'
    + f"named.writeStream{DELTA}",
    "duplicates": KAFKA
    + 'once = orders.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])\n'
    + f"once.writeStream{DELTA}",
}

FEATURES = (
    "kafka",
    "json(",
    "window(",
    ".join(",
    "foreachBatch",
    "whenMatchedDelete",
    "update",
    "delta",
    "jdbc",
    "complete",
    "spark.sql(",
)


def migrate(spark: SparkSession, folder: Path, text: str) -> tuple[Path, Path]:
    """The script of a text, and the folder of its project."""
    script, project = folder / "job.py", folder / "project"
    script.write_text(HEAD + text)
    (project / "in" / "users").mkdir(parents=True)
    for name, content in migrate_script(spark, script).files.items():
        (project / name).write_text(content)
    return script, project


def prove(spark: SparkSession, folder: Path, text: str) -> list[QueryVerdict]:
    return prove_migration(spark, *migrate(spark, folder, text))


@pytest.mark.sweep(by=lambda shape: [word for word in FEATURES if word in SHAPES[shape]])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_project_gives_the_tables_of_its_script(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    script, project = migrate(spark, tmp_path, SHAPES[shape])

    assert not check(load_spec(project / "pipeline.yml", {}), spark).has_errors
    verdicts = prove_migration(spark, script, project)

    assert [str(verdict.outcome) for verdict in verdicts] == ["same"] * SHAPES[shape].count("writeStream"), [
        str(verdict) for verdict in verdicts
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "project"]


def test_a_project_that_was_changed_differs_by_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    script, project = migrate(spark, tmp_path, SHAPES["sql"])
    transforms = project / "transforms.py"
    transforms.write_text(transforms.read_text().replace("user > '1'", "user > '2'"))

    (verdict,) = prove_migration(spark, script, project)

    assert verdict.outcome == "different"
    assert verdict.only_in_script > 0
    assert verdict.only_in_project == 0
    assert verdict.examples[0].startswith("script : page=")


def test_a_query_that_is_not_in_the_project_and_one_that_fails_are_not_compared(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = (
        FILES
        + f"views.select(F.raise_error('no')).writeStream{DELTA}"
        + 'views.writeStream.format("iceberg").option("checkpointLocation", "c").toTable("a.b")\n'
    )

    failing, missing = prove(spark, tmp_path, text)

    assert (failing.outcome, missing.outcome) == ("not compared", "not compared")
    assert "the script's query fails over these rows" in failing.reason
    assert missing.reason == "it is not in the project"


def test_rows_that_are_given_replace_the_generated_ones(spark: SparkSession, tmp_path: Path) -> None:
    script, project = migrate(spark, tmp_path, KAFKA + f"orders.writeStream{DELTA}")
    sample = tmp_path / "orders.jsonl"
    sample.write_text('{"id": 1, "kind": "sale"}\n{"id": 2}\n')

    (verdict,) = prove_migration(spark, script, project, samples={"raw": sample})

    assert (verdict.outcome, verdict.rows) == ("same", 2)


def test_the_function_of_a_batch_writes_nowhere_but_into_the_proof(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = FILES + (
        "def store(batch, number):\n"
        f"    batch.write.mode('append').parquet('{tmp_path}/real')\n"
        f"    with open('{tmp_path}/done', 'w') as file:\n        file.write('yes')\n"
        "views.writeStream.foreachBatch(store).option('checkpointLocation', 'cp/o').start()\n"
    )

    (verdict,) = prove(spark, tmp_path, text)

    assert verdict.outcome == "same"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "project"]
