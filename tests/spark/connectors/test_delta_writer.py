"""The Delta writer: rows removed by key, and other writers at the same table."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_tables import read_rows
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.commit.log import TableSnapshot, read_entry
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import CheckpointMismatch, MillstreamError, NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")


def opened(spark: SparkSession, sink: DeltaSink, frame: DataFrame, query_id: str = "one") -> DeltaWriter:
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", query_id, "delta:o", OutputMode.UPDATE))
    writer.open(spark, frame.schema)
    return writer


def changes(spark: SparkSession, rows: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, text, op)")


def texts(sink: DeltaSink) -> dict[int, str]:
    rows = read_rows(str(sink.path), "id", "text")
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def removing(tmp_path: Path, **more: object) -> DeltaSink:
    settings = {"path": str(tmp_path / "t"), "merge_on": ["id"], "delete_when": "op = 'D'", **more}
    return DeltaSink.model_validate(settings)


FIRST = "(0, 'a', 'I'), (1, 'b', 'I'), (2, 'c', NULL), (3, 'never there', 'D')"
SECOND = "(0, 'gone', 'D'), (1, 'changed', 'U'), (9, 'never there', 'D'), (5, 'added', NULL)"


@pytest.mark.parametrize("more", [{}, {"delete_when": "n < 0"}, {"merge_schema": True}])
def test_a_column_of_the_table_that_the_query_no_longer_has_stays_as_it_is(
    more: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    schema = pyarrow.schema({"id": pyarrow.int32(), "note": pyarrow.string(), "n": pyarrow.int32()})
    former = pyarrow.Table.from_pylist([{"id": 1, "note": "former", "n": 1}], schema=schema)
    write_deltalake(tmp_path / "t", former)
    sink = DeltaSink.model_validate({"path": str(tmp_path / "t"), "merge_on": ["id"], **more})
    batch = spark.sql("SELECT * FROM VALUES (1, 2), (2, 3) AS t(id, n)")

    opened(spark, sink, batch).write(batch, 0)

    assert sorted(read_rows(tmp_path / "t", "id", "note", "n")) == [(1, "former", 2), (2, None, 3)]


@pytest.mark.parametrize(
    "key", [{"merge_on": ["id"]}, {"cdc": {"keys": ["id"], "sequence_by": "n"}}], ids=["merge_on", "cdc"]
)
def test_a_table_whose_types_would_cut_values_is_refused(
    key: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    sink = DeltaSink.model_validate({"path": str(tmp_path / "t"), **key})
    former = pyarrow.table({"id": pyarrow.array([1]), "n": pyarrow.array([1], pyarrow.int32())})
    write_deltalake(tmp_path / "t", former)
    fraction = spark.sql("SELECT 1 AS id, 1.9D AS n")

    with pytest.raises(NotReady, match=r"column 'n' of .* is int, but the query's column is double"):
        opened(spark, sink, fraction)


@pytest.mark.parametrize(
    "key", [{"merge_on": ["ID"]}, {"cdc": {"keys": ["id"], "sequence_by": "n"}}], ids=["merge_on", "cdc"]
)
def test_a_table_in_which_two_keys_may_be_equal_is_refused(
    key: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    sink = DeltaSink.model_validate({"path": str(tmp_path / "t"), **key})
    write_deltalake(tmp_path / "t", pyarrow.table({"id": [1.0], "n": [1.0]}))
    large = spark.sql("SELECT 9007199254740993L AS id, 1L AS n")

    with pytest.raises(
        NotReady, match=r"is double, but the query's column is bigint: keys of more than 15 digits"
    ):
        opened(spark, sink, large)


def test_only_a_column_that_delta_widens_takes_values_of_a_larger_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "t"
    sink = DeltaSink.model_validate({"path": str(place), "merge_on": ["id"], "merge_schema": True})
    spark.sql(
        f"CREATE TABLE delta.`{place}` (id BIGINT, n INT, large BIGINT) USING delta"
        " TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    fraction = spark.sql("SELECT 1L AS id, 1.9D AS n")

    opened(spark, sink, fraction).write(fraction, 0)

    # delta-rs does not read a table whose columns may be widened.
    assert [row.n for row in spark.read.format("delta").load(str(place)).collect()] == [1.9]
    with pytest.raises(NotReady, match=r"column 'large' of .* is bigint, but the query's column is double"):
        opened(spark, sink, spark.sql("SELECT 1L AS id, 1.9D AS large"))


def test_a_table_of_the_query_has_its_types(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink.model_validate({"path": str(tmp_path / "t"), "merge_on": ["id"]})
    rows = spark.sql(
        "SELECT 1 AS id, 1.5 AS d, 1.5D AS f, DATE'2026-01-01' AS day, TIMESTAMP'2026-01-01' AS at,"
        " TIMESTAMP_NTZ'2026-01-01' AS ntz, true AS b, X'00' AS x, array(1.5D) AS a, NULL AS none,"
        " CAST('a' AS VARCHAR(3)) AS v"
    )
    opened(spark, sink, rows).write(rows, 0)

    assert opened(spark, sink, rows).has_batch(0)


def test_a_row_marked_as_deleted_removes_the_row_of_its_key(spark: SparkSession, tmp_path: Path) -> None:
    sink, first = removing(tmp_path), changes(spark, FIRST)
    writer = opened(spark, sink, first)
    writer.write(first, 0)
    assert texts(sink) == {0: "a", 1: "b", 2: "c"}

    writer.write(changes(spark, SECOND), 1)

    assert texts(sink) == {1: "changed", 2: "c", 5: "added"}


def test_an_empty_text_in_a_partition_column_is_the_key_that_the_table_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    deletion = "text = '' AND op = 'D'"
    sink = removing(tmp_path, merge_on=["text", "id"], partition_by=["text"], delete_when=deletion)
    for number, rows in enumerate(
        ["(1, '', 'I'), (2, '', 'I'), (3, 'c', 'I')", "(1, '', 'U'), (2, '', 'D')"]
    ):
        batch = changes(spark, rows)
        opened(spark, sink, batch).write(batch, number)

    assert sorted(read_rows(tmp_path / "t", "id", "text", "op")) == [(1, None, "U"), (3, "c", "I")]
    twice = changes(spark, "(1, '', 'U'), (1, CAST(NULL AS STRING), 'U')")
    with pytest.raises(MillstreamError, match="2 rows of one batch have the same key"):
        opened(spark, sink, twice).write(twice, 2)


def test_a_replayed_deletion_does_not_remove_what_came_later(spark: SparkSession, tmp_path: Path) -> None:
    sink, first = removing(tmp_path), changes(spark, FIRST)
    writer = opened(spark, sink, first)
    writer.write(first, 0)
    writer.write(changes(spark, SECOND), 1)
    writer.write(changes(spark, "(0, 'back', 'I')"), 2)

    delta_writer = opened(spark, sink, first)
    delta_writer._last = None  # as a driver that looked before the others wrote
    delta_writer.write(changes(spark, SECOND), 1)

    assert texts(sink)[0] == "back"


def test_a_deletion_and_a_column_that_is_added(spark: SparkSession, tmp_path: Path) -> None:
    sink, first = removing(tmp_path, merge_schema=True), changes(spark, FIRST)
    opened(spark, sink, first).write(first, 0)
    wider = changes(spark, SECOND).selectExpr("*", "1 AS more")

    opened(spark, sink, wider).write(wider, 1)

    assert texts(sink) == {1: "changed", 2: "c", 5: "added"}
    columns = DeltaTable(str(sink.path)).schema().fields
    assert [column.name for column in columns] == ["id", "text", "op", "more"]


@pytest.mark.parametrize("more", [{"partition_by": ["op"]}, {}], ids=["of the spec", "of another program"])
def test_a_table_that_each_batch_replaces_stays_partitioned_if_columns_may_be_added(
    more: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    place, first = tmp_path / "t", changes(spark, FIRST)
    sink = DeltaSink.model_validate({"path": str(place), "merge_schema": True, **more})
    first.write.format("delta").partitionBy("op").save(str(place))

    for number, batch in enumerate((first, first.selectExpr("*", "1 AS more"))):
        writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one", "delta:o", OutputMode.COMPLETE))
        writer.open(spark, batch.schema)
        writer.write(batch, number)

    table = DeltaTable(str(place))
    assert table.metadata().partition_columns == ["op"]
    assert [column.name for column in table.schema().fields] == ["id", "text", "op", "more"]


def test_a_condition_over_no_column_of_the_query_is_told(spark: SparkSession, tmp_path: Path) -> None:
    first = changes(spark, FIRST)

    with pytest.raises(NotReady, match=r"delete_when of .* is not a valid condition"):
        opened(spark, removing(tmp_path, delete_when="kind = 'D'"), first)


def test_two_queries_that_merge_into_one_table_at_once_lose_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = DeltaSink(path=str(tmp_path / "t"), merge_on=("id",))
    first = spark.range(0, 20).selectExpr("id", "'start' AS text")
    opened(spark, sink, first, "zero").write(first, 0)
    ready = threading.Barrier(2)

    def merge(query: str, start: int) -> None:
        own = spark.newSession()
        rows = own.range(start, start + 20).selectExpr("id", f"'{query}' AS text")
        writer = opened(own, sink, rows, query)
        ready.wait(60)
        for batch_id in range(2):
            writer.write(rows, batch_id)

    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(merge, "one", 0), pool.submit(merge, "two", 10)]:
            future.result(100)

    actual = texts(sink)
    assert set(actual) == set(range(30))
    assert {actual[number] for number in range(10)} == {"one"}
    assert {actual[number] for number in range(20, 30)} == {"two"}


@pytest.mark.parametrize("kind", ["path", "table"])
def test_two_queries_that_find_no_table_merge_into_the_one_that_the_first_creates(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    place = {"path": str(tmp_path / "t")} if kind == "path" else {"table": "shared_by_two"}
    sink = DeltaSink.model_validate({**place, "merge_on": ["id"]})
    rows = changes(spark, "(1, 'first', 'I'), (2, 'first', 'I')")
    later = changes(spark, "(2, 'second', 'U'), (3, 'second', 'I')")
    one, two = opened(spark, sink, rows, "one"), opened(spark, sink, later, "two")

    one.write(rows, 0)
    two.write(later, 0)

    found = spark.sql(f"SELECT id, text FROM {sink.place} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "first"), (2, "second"), (3, "second")]


def test_of_two_runs_with_one_number_for_other_records_the_second_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink, rows = DeltaSink.model_validate({"path": str(tmp_path / "t")}), spark.range(3)
    opened(spark, sink, rows).write(rows, 0)
    delta_writer, copy = opened(spark, sink, rows), opened(spark, sink, rows)
    delta_writer.note, copy.note = (
        lambda _, end=end: BatchMetadata((f'{{"end": {end}}}',), end) for end in (1, 2)
    )  # type: ignore[misc]
    delta_writer.write(rows, 1)

    with pytest.raises(
        CheckpointMismatch, match="already has a batch 1 of query 'orders' with other records"
    ):
        copy.write(spark.range(3, 6), 1)

    assert len(read_rows(str(sink.path))) == 6


def test_a_batch_whose_commit_delta_has_deleted_from_the_log_is_known_by_its_number(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink, rows = DeltaSink.model_validate({"path": str(tmp_path / "t")}), spark.range(3)
    first, second = opened(spark, sink, rows, "one"), opened(spark, sink, rows, "two")
    first.write(rows, 7)
    for batch_id in range(2):
        second.write(rows, batch_id)
    # As Delta does once a commit is older than delta.logRetentionDuration.
    DeltaTable(tmp_path / "t").create_checkpoint()
    (tmp_path / "t/_delta_log/00000000000000000000.json").unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    entries = opened(spark, sink, rows, "one").last_committed_batches(spark)

    assert {entry.writer: entry.batch for entry in entries} == {
        first.identity.key: 7,
        second.identity.key: 1,
    }


class LogWithoutFiles:
    """A table's log whose files cannot be read, and what Java says of them."""

    def __init__(self, spark: SparkSession, error: str) -> None:
        self._spark, self._error = spark, error

    def deltaLog(self) -> LogWithoutFiles:  # noqa: N802 - Delta's name
        return self

    store = deltaLog

    def newDeltaHadoopConf(self) -> None: ...  # noqa: N802 - Delta's name

    def logPath(self) -> Any:  # noqa: N802 - Delta's name
        return self._spark._jvm.org.apache.hadoop.fs.Path("/table/_delta_log")  # type: ignore[union-attr]

    def readAsIterator(self, *_: Any) -> None:  # noqa: N802 - Delta's name
        raise OSError(self._error)


@pytest.mark.parametrize("name", ["java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"])
def test_a_commit_that_is_missing_is_known_by_the_names_that_file_systems_give_it(
    name: str, spark: SparkSession
) -> None:
    snapshot = TableSnapshot(3, (), (), LogWithoutFiles(spark, f"{name}: 00000000000000000003.json"))

    assert read_entry(spark, snapshot, "one", 0) is None


def test_a_commit_that_cannot_be_read_is_not_missing(spark: SparkSession) -> None:
    snapshot = TableSnapshot(3, (), (), LogWithoutFiles(spark, "AccessDeniedException: denied"))

    with pytest.raises(OSError, match="denied"):
        read_entry(spark, snapshot, "one", 0)
