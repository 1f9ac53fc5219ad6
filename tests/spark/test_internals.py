"""The private parts of PySpark and of the JVM that the package uses are where `spark/internals.py` expects them."""

from __future__ import annotations

import importlib
import threading
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from pyspark.sql import functions
from pyspark.sql.functions import expr, lit

from millstream.engine.events.event_bus import EventBus
from millstream.engine.events.progress_listener import Listener
from millstream.engine.state_memory_watch import StateMemoryWatch
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


@pytest.fixture
def query(spark: SparkSession, checkpoint: Path) -> Iterator[StreamingQuery]:
    """A query that has committed its first batch and waits an hour for the next."""
    delivered = threading.Event()

    def deliver(batch: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - Spark's signature
        delivered.set()

    rows = spark.readStream.format("rate").load()
    writer = rows.writeStream.foreachBatch(deliver).option("checkpointLocation", str(checkpoint))
    started = writer.trigger(processingTime="1 hour").start()
    assert delivered.wait(120)
    yield started
    started.stop()


def test_classes_objects_and_collections_of_the_jvm(spark: SparkSession) -> None:
    assert internals.java_class(spark, "java.lang.Math").max(1, 2) == 2
    assert internals.scala_object(spark, "scala.None").isEmpty()
    assert internals.scala_seq(spark, ["a", "b"]).size() == 2
    # Spark's default, as the session of the tests has none of its own.
    assert internals.executor_memory(spark.sparkContext) == 1 << 30
    assert internals.gateway(spark).new_array(internals.jvm(spark).java.lang.String, 2)[1] is None


def test_jobs_of_a_context(spark: SparkSession) -> None:
    before = internals.count_jobs(spark.sparkContext)
    spark.sparkContext.parallelize([1]).count()

    assert internals.count_jobs(spark.sparkContext) == before + 1


def test_sessions(spark: SparkSession) -> None:
    other = spark.newSession()
    before = internals.default_session()
    assert internals.active_context() is spark.sparkContext
    try:
        internals.set_default_session(other)
        assert internals.default_session() is other
        assert spark.getActiveSession() is not None
        active = internals.jvm(spark).org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
        assert active.equals(internals.java_session(other))
    finally:
        internals.set_default_session(before or spark)
    assert not internals.clone_session(spark).equals(internals.java_session(spark))


def test_columns(spark: SparkSession) -> None:
    assert internals.column_sql(spark, expr("a > 1 AND b IS NULL")) == "((a > 1) AND (b IS NULL))"


def test_plans(spark: SparkSession) -> None:
    frame = spark.range(3).where("id > 0")

    assert internals.analyzed_plan(frame).nodeName() == "Filter"
    assert internals.frame_of_plan(spark, internals.analyzed_plan(frame)).count() == 2
    assert internals.parse_plan(spark, "SELECT 1 AS one").nodeName() == "Project"
    assert internals.java_frame(frame).count() == 2


def test_rows_of_a_local_checkpoint_are_deleted(spark: SparkSession) -> None:
    stored: Any = spark.sparkContext._jsc
    before = set(stored.getPersistentRDDs())
    frame = spark.range(3).localCheckpoint()
    assert set(stored.getPersistentRDDs()) > before

    internals.drop_local_checkpoint(frame)

    assert set(stored.getPersistentRDDs()) == before


def test_optimised_plans(spark: SparkSession) -> None:
    numbers = spark.range(3).withColumnRenamed("id", "n")
    joined = numbers.alias("a").join(numbers.alias("b"), "n").where("n > 0 AND n < 2")
    join = internals.optimize_plan(spark, internals.analyzed_plan(joined)).children().apply(0)
    groups = internals.optimize_plan(spark, internals.analyzed_plan(numbers.groupBy("n").count()))

    assert join.nodeName() == "Join"
    keys = internals.equi_join_keys(spark, join)
    assert (keys._2().size(), keys._3().size()) == (1, 1)
    assert internals.physical_aggregation(spark, groups)._2().size() == 1
    condition = internals.analyzed_plan(joined).condition()
    assert internals.split_conjunction(spark, condition).size() == 2
    internals.start_state_coordinator(spark)


def test_the_clock_of_a_plan(spark: SparkSession) -> None:
    times = spark.range(1).select(functions.current_timestamp(), functions.current_date() + 1)
    hidden = internals.hide_clock(spark, internals.analyzed_plan(times))

    text = str(internals.optimize_plan(spark, hidden).toString())

    assert "current_timestamp() AS" in text
    assert "date_add(current_date(), 1)" in text


def test_hadoop(spark: SparkSession, tmp_path: Path) -> None:
    path = internals.jvm(spark).org.apache.hadoop.fs.Path(str(tmp_path))

    assert path.getFileSystem(internals.hadoop_configuration(spark)).exists(path)


def test_a_query_that_waits_is_told_and_ends_by_itself(spark: SparkSession, query: StreamingQuery) -> None:
    looking = threading.Event()
    for _ in range(1200):
        if internals.is_waiting_for_trigger(query):
            break
        looking.wait(0.1)
    internals.wait_for_listeners(spark, 60_000)

    assert internals.is_running(query)
    assert internals.is_waiting_for_trigger(query)
    assert '"batchId"' in internals.progress_reports(query)[0].json()
    internals.terminate_after_batch(spark, query)
    assert internals.stream_execution(query).state().get().toString() == "TERMINATED"


def test_a_listener_hears_of_a_query_until_it_is_removed(spark: SparkSession, checkpoint: Path) -> None:
    events = EventBus()
    heard: list[tuple[str, str, int]] = []
    events.listen(lambda event: heard.append((event.event, event.query, event.data["rows_in"])))

    def run(name: str) -> None:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint / name))
        query = writer.queryName(name).trigger(availableNow=True).start()
        query.awaitTermination()
        internals.wait_for_listeners(spark, 60_000)

    attached = internals.add_query_listener(spark, Listener(events, StateMemoryWatch(lambda: 0, events)))
    run("before")
    internals.remove_query_listener(spark, attached)
    run("after")
    events.close()

    assert heard == [("batch_committed", "before", 5)]


def test_the_jvm_is_asked_for_a_name_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    client = internals.gateway(spark)._gateway_client
    send = client.send_command

    def note(command: str, *more: Any, **options: Any) -> Any:
        asked.append(command)
        return send(command, *more, **options)

    monkeypatch.setattr(client, "send_command", note)
    view = internals.jvm(spark)
    names = [
        lambda: view.java.util.zip.CRC32,
        lambda: view.PythonSQLUtils,
        lambda: view.org.apache.spark.util.Utils,
    ]
    found = [name() for name in names]
    first = len(asked)

    assert [name()._fqn for name in names] == [java._fqn for java in found]
    assert 0 < first == len(asked)
    assert view.java.util.zip.CRC32().getValue() == 0
    with pytest.raises(TypeError, match="not callable"):
        view.java.util.zip.Absent()


def test_the_function_of_a_writer(spark: SparkSession) -> None:
    writer: Any = spark.readStream.format("rate").load().writeStream.foreachBatch(lambda *_: None)

    assert internals.foreach_batch_function(writer) is not None


def test_workers_import_the_modules_of_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    def double(number: int) -> int:
        return int(importlib.import_module("doubling_of_numbers").double(number))

    (tmp_path / "doubling_of_numbers.py").write_text("def double(number):\n    return 2 * number\n")
    internals.set_worker_folder(spark.sparkContext, str(tmp_path))

    assert spark.sparkContext.parallelize([2], 1).map(double).collect() == [4]


def test_numpys_values_are_still_arguments(spark: SparkSession) -> None:
    values = numpy.int64(7), numpy.array([1.5, 2.5])

    row = spark.range(1).select(*map(lit, values), *map(functions.lit, values)).first()

    assert row is not None
    assert [*row] == [7, [1.5, 2.5], 7, [1.5, 2.5]]


def test_a_literal_is_what_spark_makes_of_it(spark: SparkSession) -> None:
    values = [None, True, 7, 1.5, "a", b"a", date(2026, 1, 1), ["a", "b"]]

    row = (
        spark.range(1)
        .select(*map(functions.lit, [*values, functions.col("id")]), functions.col("id") == 0)
        .first()
    )

    assert row is not None
    assert [*row] == [*values, 0, True]
