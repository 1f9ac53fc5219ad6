"""The e-commerce pipeline in PySpark by hand, as an expert writes it, or with --naive a tutorial.

Reads the same topics, fills the same tables, ends once it has caught up. Delta, Kafka and JDBC jars come with
--jars. Delivery is as careful as the spec's: a replayed batch changes nothing in Delta and Parquet (the batch
id is in the commit, or in the folder) and nothing in Postgres (an upsert).
"""

from __future__ import annotations

import argparse
import threading
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

SCHEMAS = {
    "clicks": "event_id STRING, user_id STRING, session_id STRING, product_id STRING, event_time TIMESTAMP",
    "cart_events": "event_id STRING, user_id STRING, product_id STRING, quantity INT, event_time TIMESTAMP",
    "purchases": "event_id STRING, user_id STRING, product_id STRING, quantity INT, amount DOUBLE, "
    "event_time TIMESTAMP",
}
KINDS = {"clicks": "click", "cart_events": "cart", "purchases": "purchase"}
COLUMNS = (
    "event_id", "user_id", "product_id", "quantity", "amount", "event_time", "category", "price", "day",
)  # fmt: skip
TABLE = """CREATE TABLE IF NOT EXISTS purchases (event_id text PRIMARY KEY, user_id text, product_id text,
quantity integer, amount double precision, event_time timestamptz, category text, price double precision,
day date)"""
ROWS_A_BATCH = 200_000


@dataclass(frozen=True)
class Places:
    """Where it reads and writes."""

    kafka: str
    postgres: str
    lake: Path
    state: Path
    catalog: Path
    prefix: str = ""
    """What the topics' names begin with."""


def session(jars: str, master: str, partitions: str, *, naive: bool) -> SparkSession:
    """A session; the expert's has the settings that matter."""
    builder = (
        SparkSession.builder.appName("handwritten")
        .master(master)
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
    )
    if not naive:
        builder = (
            builder.config("spark.sql.shuffle.partitions", partitions)
            .config("spark.databricks.delta.snapshotPartitions", "2")
            .config("spark.scheduler.mode", "FAIR")
            .config("spark.driver.memory", "4g")
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def raw(spark: SparkSession, places: Places, topics: str) -> DataFrame:
    """The records of one topic or several, as bytes."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", places.kafka)
        .option("subscribe", topics)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS_A_BATCH)
        .load()
    )


def parsed(topic: str) -> Column:
    """The value as a struct with the corrupt text beside it."""
    schema = f"{SCHEMAS[topic]}, _corrupt STRING"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    return F.from_json(F.col("value").cast("string"), schema, options)


def good(row: str) -> Column:
    """Was the record read, and does it say when it happened?"""
    return F.col(f"{row}._corrupt").isNull() & F.col(f"{row}.event_time").isNotNull()


def events(spark: SparkSession, places: Places, topic: str) -> DataFrame:
    """A topic's good records, each delivery once."""
    rows = (
        raw(spark, places, f"{places.prefix}{topic}")
        .select(parsed(topic).alias("row"))
        .where(good("row"))
        .select("row.*")
    )
    rows = rows.drop("_corrupt").withWatermark("event_time", "5 minutes")
    return rows.dropDuplicatesWithinWatermark(["event_id"])


def funnel(spark: SparkSession, places: Places) -> DataFrame:
    """Clicks, carts and purchases per quarter of an hour."""
    kinds = [
        events(spark, places, topic).select(F.lit(kind).alias("kind"), "event_time")
        for topic, kind in KINDS.items()
    ]
    together = kinds[0].unionByName(kinds[1]).unionByName(kinds[2])
    counted = together.groupBy(F.window("event_time", "15 minutes")).agg(
        F.count_if(F.col("kind") == "click").alias("click_count"),
        F.count_if(F.col("kind") == "cart").alias("cart_count"),
        F.count_if(F.col("kind") == "purchase").alias("purchase_count"),
    )
    return counted.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "click_count",
        "cart_count",
        "purchase_count",
        F.try_divide("purchase_count", "click_count").alias("conversion_rate"),
    )


def malformed(spark: SparkSession, places: Places) -> DataFrame:
    """The records of all topics that cannot be read, with their place."""
    bad = F.expr("false")
    rows = raw(spark, places, ",".join(f"{places.prefix}{topic}" for topic in SCHEMAS))
    for topic in SCHEMAS:
        is_topic = F.col("topic") == f"{places.prefix}{topic}"
        rows = rows.withColumn(topic, F.when(is_topic, parsed(topic)))
        bad = bad | (is_topic & ~F.coalesce(good(topic), F.expr("false")))
    return rows.where(bad).select("topic", "partition", "offset", "timestamp", "key", "value")


class Funnel:
    """Merges a batch into the funnel's Delta table."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        spark = batch.sparkSession
        batch.createOrReplaceTempView("changes")
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS delta.`{self.path}` (window_start TIMESTAMP, window_end TIMESTAMP, "
            "click_count BIGINT, cart_count BIGINT, purchase_count BIGINT, conversion_rate DOUBLE) "
            "USING delta"
        )
        spark.conf.set("spark.databricks.delta.write.txnAppId", "funnel")
        spark.conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        try:
            spark.sql(
                f"MERGE INTO delta.`{self.path}` t USING changes s ON t.window_start = s.window_start "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        finally:
            spark.conf.unset("spark.databricks.delta.write.txnAppId")
            spark.conf.unset("spark.databricks.delta.write.txnVersion")


class Purchases:
    """Writes a batch to Parquet and upserts it into Postgres, the source read once."""

    def __init__(self, places: Places) -> None:
        self.path = places.lake / "purchases"
        self.url = places.postgres

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        batch = batch.persist()
        try:
            # A replay overwrites the folders of the batch that it repeats, and no others.
            (
                batch.withColumn("batch_id", F.lit(batch_id))
                .write.mode("overwrite")
                .option("partitionOverwriteMode", "dynamic")
                .partitionBy("day", "batch_id")
                .parquet(str(self.path))
            )
            self._upsert(batch.select(*COLUMNS).toArrow())
        finally:
            batch.unpersist()

    def _upsert(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        text = pa.BufferOutputStream()
        pyarrow.csv.write_csv(rows, text, pyarrow.csv.WriteOptions(include_header=False))
        names = ", ".join(COLUMNS)
        changed = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            cursor.execute("CREATE TEMP TABLE staged (LIKE purchases) ON COMMIT DROP")
            with cursor.copy(f"COPY staged ({names}) FROM STDIN WITH (FORMAT csv)") as copy:
                copy.write(text.getvalue().to_pybytes())
            cursor.execute(
                f"INSERT INTO purchases ({names}) SELECT {names} FROM staged "
                f"ON CONFLICT (event_id) DO UPDATE SET {changed}"
            )


class NaivePurchases(Purchases):
    """The tutorial's way: the batch computed once for each sink, and rows sent one by one."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:  # noqa: ARG002 - Spark's signature
        batch.write.mode("append").partitionBy("day").parquet(str(self.path))
        names, text = ", ".join(COLUMNS), ", ".join(["%s"] * len(COLUMNS))
        changed = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
        rows = [tuple(row) for row in batch.select(*COLUMNS).collect()]
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            cursor.executemany(
                f"INSERT INTO purchases ({names}) VALUES ({text}) "
                f"ON CONFLICT (event_id) DO UPDATE SET {changed}",
                rows,
            )


def main() -> None:
    """Start the three queries, wait until they have caught up."""
    parser = argparse.ArgumentParser()
    for name in ("kafka", "postgres", "lake", "state", "catalog", "jars"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--partitions", default="2", help="Of the expert's shuffles.")
    parser.add_argument("--naive", action="store_true")
    parser.add_argument("--prefix", default="", help="What the topics' names begin with.")
    parser.add_argument("--trigger", help="Run on, with this trigger, in place of ending once caught up.")
    args = parser.parse_args()
    folders = (Path(args.lake), Path(args.state), Path(args.catalog))
    places = Places(args.kafka, args.postgres, *folders, args.prefix)
    trigger: dict[str, object] = {"processingTime": args.trigger} if args.trigger else {"availableNow": True}
    with psycopg.connect(places.postgres) as connection:
        connection.execute(TABLE)
    spark = session(args.jars, args.master, args.partitions, naive=args.naive)
    catalog = spark.read.parquet(str(places.catalog)).select("product_id", "category", "price")
    joined = events(spark, places, "purchases").join(catalog, "product_id", "left")
    joined = joined.withColumn("day", F.to_date("event_time"))
    sink = (NaivePurchases if args.naive else Purchases)(places)
    letters = malformed(spark, places).writeStream.format("delta").outputMode("append")
    writers = {
        "funnel": funnel(spark, places)
        .writeStream.outputMode("update")
        .foreachBatch(Funnel(places.lake / "funnel")),
        "purchases": joined.writeStream.outputMode("append").foreachBatch(sink),
        "malformed": letters.option("path", str(places.lake / "malformed")),
    }
    failed = []

    def run(name: str) -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        writer = writers[name].queryName(name).option("checkpointLocation", str(places.state / name))
        try:
            writer.trigger(**trigger).start().awaitTermination()
        except Exception as error:  # noqa: BLE001 - Spark or a sink may raise anything; raised after all have ended
            failed.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spark.stop()
    if failed:
        raise failed[0]


if __name__ == "__main__":
    main()
