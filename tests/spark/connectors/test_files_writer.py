"""The files writer: each batch once, whatever it dies of, and no reader sees half a file."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pytest

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.files import manifest, publish
from millstream.connectors.files.sink import CsvSink, FilesSink, JsonSink, OrcSink, ParquetSink, TextSink
from millstream.connectors.files.sink_folder import HadoopPlace, LocalPlace
from millstream.connectors.files.writer import FilesWriter
from millstream.diagnostics.failure import CheckpointError, NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.files.sink_folder import FileEntry

pytestmark = pytest.mark.usefixtures("interpreted")

SCHEMA = "id BIGINT, day STRING, note STRING"
# A flat folder and one that is divided; twice or once differs from test to test.
FLAT_AND_DIVIDED = pytest.mark.sweep(by=lambda sink: [bool(sink)])
# Any folder, as what is tested is not where its files are.
ANY_FOLDER = pytest.mark.sweep(by=lambda sink: [sink is not None])


class Died(Exception):
    """The driver is gone."""


def identity(query_id: str = "3f0c") -> SinkIdentity:
    return SinkIdentity("shop", "orders", query_id, "parquet:orders", OutputMode.APPEND)


def batch(spark: SparkSession, first: int, count: int = 10) -> DataFrame:
    rows = [(number, f"2026-01-0{1 + number % 3}", f"row {number}") for number in range(first, first + count)]
    return spark.createDataFrame(rows, SCHEMA).repartition(2)


def opened(spark: SparkSession, sink: FilesSink, query_id: str = "3f0c") -> FilesWriter:
    writer = FilesWriter(sink, identity(query_id))
    writer.open(spark, batch(spark, 0).schema)
    return writer


def ids(folder: Path) -> Counter[int]:
    """The ids that a reader without Spark finds, by how often."""
    if not folder.exists():
        return Counter()
    table = pyarrow.dataset.dataset(str(folder), format="parquet", partitioning="hive").to_table(
        columns=["id"]
    )
    return Counter(table.column("id").to_pylist())


def count_ids(first: int, count: int = 10) -> Counter[int]:
    return Counter(range(first, first + count))


@pytest.fixture(params=[(), ("day",), ("day", "note")], ids=["flat", "divided", "divided twice"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> ParquetSink:
    return ParquetSink(path=str(tmp_path / "out"), partition_by=request.param)


@FLAT_AND_DIVIDED
def test_batches_stand_beside_each_other(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    writer = opened(spark, sink)

    first = writer.write(batch(spark, 0), 0)
    writer.write(batch(spark, 10), 1)

    assert ids(tmp_path / "out") == count_ids(0, 20)
    assert (first.rows, first.is_skipped) == (10, False)


@FLAT_AND_DIVIDED
def test_spark_reads_what_was_written(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    opened(spark, sink).write(batch(spark, 0), 0)

    read = spark.read.parquet(str(tmp_path / "out"))

    assert set(read.columns) == {"id", "day", "note"}
    assert Counter(row.id for row in read.collect()) == count_ids(0)


@FLAT_AND_DIVIDED
def test_a_replayed_batch_changes_nothing(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    opened(spark, sink).write(batch(spark, 0), 7)
    before = sorted(tmp_path.rglob("*"))

    write_result = opened(spark, sink).write(batch(spark, 0), 7)

    assert write_result.is_skipped
    assert sorted(tmp_path.rglob("*")) == before


def dies_after_staging(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FilesWriter, "_staged_files", die)


def dies_while_staging(patch: pytest.MonkeyPatch) -> None:
    def half(self: FilesWriter, frame: DataFrame, home: str) -> None:
        real(self, frame.limit(3), home)
        raise Died

    real = FilesWriter._stage
    patch.setattr(FilesWriter, "_stage", half)


def dies_before_the_manifest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalPlace, "create", die)


def dies_after_the_manifest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publish, "roll_forward", die)


def dies_after_one_move(patch: pytest.MonkeyPatch) -> None:
    moves: list[str] = []
    real = LocalPlace.move

    def move_one_file(self: LocalPlace, name: str, to: str) -> None:
        if moves:
            raise Died
        moves.append(name)
        real(self, name, to)

    patch.setattr(LocalPlace, "move", move_one_file)


def dies_before_the_staging_folder_goes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalPlace, "remove", die)


def dies_before_clearing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publish, "clear_staging", die)


def die(*_args: Any, **_options: Any) -> None:
    raise Died


STEPS = [
    dies_while_staging,
    dies_after_staging,
    dies_before_the_manifest,
    dies_after_the_manifest,
    dies_after_one_move,
    dies_before_the_staging_folder_goes,
    dies_before_clearing,
]


@pytest.mark.sweep("step", "sink")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_batch_is_there_once_whatever_step_it_died_at(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path, step: Callable[[pytest.MonkeyPatch], None]
) -> None:
    opened(spark, sink).write(batch(spark, 0), 0)
    with pytest.MonkeyPatch.context() as patch:
        writer = opened(spark, sink)
        step(patch)
        with pytest.raises(Died):
            writer.write(batch(spark, 10), 1)

    writer = opened(spark, sink)
    stored = writer.has_batch(1)
    write_result = writer.write(batch(spark, 10), 1)

    assert ids(tmp_path / "out") == count_ids(0, 20)
    assert stored == write_result.is_skipped
    assert LocalPlace(tmp_path / "out").names(manifest.STAGING) == []


@pytest.mark.sweep("step", "sink")
@pytest.mark.parametrize(
    "step", [dies_while_staging, dies_after_staging, dies_before_the_manifest, dies_after_the_manifest]
)
def test_a_reader_sees_nothing_of_a_batch_that_died_before_its_first_move(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path, step: Callable[[pytest.MonkeyPatch], None]
) -> None:
    writer = opened(spark, sink)
    writer.write(batch(spark, 0), 0)
    with pytest.MonkeyPatch.context() as patch:
        step(patch)
        with pytest.raises(Died):
            writer.write(batch(spark, 10), 1)

    assert ids(tmp_path / "out") == count_ids(0)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 10


@FLAT_AND_DIVIDED
def test_a_start_alone_finishes_the_moves_of_a_committed_batch(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        writer = opened(spark, sink)
        dies_after_one_move(patch)
        with pytest.raises(Died):
            writer.write(batch(spark, 0), 0)

    opened(spark, sink)

    assert ids(tmp_path / "out") == count_ids(0)


@ANY_FOLDER
def test_two_drivers_at_one_batch_write_it_once(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path
) -> None:
    slow, quick = opened(spark, sink), opened(spark, sink)
    real = FilesWriter._stage

    def overtaken(self: FilesWriter, frame: DataFrame, home: str) -> None:
        real(self, frame, home)
        if self is slow:
            quick.write(batch(spark, 0), 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilesWriter, "_stage", overtaken)
        write_result = slow.write(batch(spark, 0), 0)

    assert ids(tmp_path / "out") == count_ids(0)
    assert write_result.is_skipped


@ANY_FOLDER
def test_a_driver_overtaken_after_listing_its_files_skips_the_batch(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path
) -> None:
    slow, quick = opened(spark, sink), opened(spark, sink)
    real = FilesWriter._staged_files

    def overtaken(self: FilesWriter, home: str) -> tuple[list[FileEntry], int | None]:
        files = real(self, home)
        if self is slow:
            quick.write(batch(spark, 0), 0)
        return files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilesWriter, "_staged_files", overtaken)
        write_result = slow.write(batch(spark, 0), 0)

    assert ids(tmp_path / "out") == count_ids(0)
    assert write_result.is_skipped


@ANY_FOLDER
def test_an_attempt_at_an_open_batch_is_left_to_whoever_makes_it(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path
) -> None:
    slow = opened(spark, sink)
    home = publish.staging_folder(slow.identity, 0)
    slow._stage(batch(spark, 0), home)

    opened(spark, sink)

    assert LocalPlace(tmp_path / "out").walk(home)


@FLAT_AND_DIVIDED
def test_two_queries_in_one_folder_do_not_mix(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    files_writer, other = opened(spark, sink, "aaaa"), opened(spark, sink, "bbbb")
    files_writer.write(batch(spark, 0), 0)

    other.write(batch(spark, 10), 0)
    files_writer.write(batch(spark, 0), 0)

    assert ids(tmp_path / "out") == count_ids(0, 20)


@FLAT_AND_DIVIDED
def test_an_empty_batch_leaves_no_file_of_rows(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path
) -> None:
    writer = opened(spark, sink)

    write_result = writer.write(batch(spark, 0).where("id < 0"), 0)

    assert write_result.rows == 0
    assert writer.has_batch(0)
    assert not list((tmp_path / "out").rglob("*.parquet"))


@FLAT_AND_DIVIDED
def test_no_checksum_files_are_left(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    opened(spark, sink).write(batch(spark, 0), 0)

    assert not list(tmp_path.rglob("*.crc"))


def test_old_manifests_go_and_their_batches_stay_known(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.connectors.files.layouts.KEEP", 2)
    sink = ParquetSink(path=str(tmp_path / "out"))
    writer = opened(spark, sink)
    for number in range(5):
        writer.write(batch(spark, 10 * number), number)

    files_writer = opened(spark, sink)
    replayed = [files_writer.write(batch(spark, 10 * number), number).is_skipped for number in range(5)]

    assert manifest.list_batches(files_writer.place, files_writer.identity) == [2, 3, 4]
    assert replayed == [True] * 5
    assert all(files_writer.has_batch(number) for number in range(5))
    assert ids(tmp_path / "out") == count_ids(0, 50)


def test_a_file_of_a_batch_that_is_gone_before_its_move_ends_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = ParquetSink(path=str(tmp_path / "out"))
    with pytest.MonkeyPatch.context() as patch:
        writer = opened(spark, sink)
        dies_after_the_manifest(patch)
        with pytest.raises(Died):
            writer.write(batch(spark, 0), 0)
    next((tmp_path / "out/_millstream/staging").rglob("*.parquet")).unlink()

    with pytest.raises(CheckpointError, match="neither staged nor in its place"):
        opened(spark, sink)


def test_a_torn_manifest_is_named(spark: SparkSession, tmp_path: Path) -> None:
    sink = ParquetSink(path=str(tmp_path / "out"))
    writer = opened(spark, sink)
    writer.write(batch(spark, 0), 0)
    (tmp_path / "out" / manifest.manifest_folder(writer.identity) / "0.json").write_text("{")

    with pytest.raises(CheckpointError, match=r"0\.json of batch 0 cannot be read"):
        writer.has_batch(0)


def test_a_folder_of_sparks_own_file_sink_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out/_spark_metadata").mkdir(parents=True)

    with pytest.raises(NotReady, match="Spark's own file sink"):
        opened(spark, ParquetSink(path=str(tmp_path / "out")))


def test_a_partition_column_that_does_not_come_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="column 'hour', which the query does not have"):
        opened(spark, ParquetSink(path=str(tmp_path / "out"), partition_by=("hour",)))


def test_text_takes_one_column(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="needs one text column"):
        opened(spark, TextSink(path=str(tmp_path / "out")))


@pytest.mark.parametrize("kind", [CsvSink, JsonSink, OrcSink, ParquetSink], ids=lambda kind: kind.kind)
def test_show_finds_the_rows_of_each_format(
    spark: SparkSession, tmp_path: Path, kind: type[FilesSink]
) -> None:
    sink = kind(
        path=str(tmp_path / "out"), partition_by=("day",), compression="zlib" if kind is OrcSink else "gzip"
    )
    opened(spark, sink).write(batch(spark, 0), 0)

    names, rows = sink.rows(4) or ([], [])

    assert len(rows) == 4
    assert len(names) == 3
    assert names[-1] == "day"


def test_text_is_written_and_shown(spark: SparkSession, tmp_path: Path) -> None:
    sink = TextSink(path=str(tmp_path / "out"), partition_by=("day",))
    writer = FilesWriter(sink, identity())
    lines = batch(spark, 0).select("day", "note")
    writer.open(spark, lines.schema)

    writer.write(lines, 0)

    assert {row[0] for row in (sink.rows(10) or ([], []))[1]} == {f"row {number}" for number in range(10)}


def test_any_file_system_of_hadoop_keeps_the_same_promises(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def through_hadoop(session: Any, location: str) -> HadoopPlace:
        jvm = session._jvm
        path = jvm.org.apache.hadoop.fs.Path(location)
        return HadoopPlace(jvm, path.getFileSystem(session._jsc.hadoopConfiguration()), path)

    monkeypatch.setattr("millstream.connectors.files.writer.open_folder", through_hadoop)
    sink = ParquetSink(path=str(tmp_path / "out"), partition_by=("note",))
    writer = opened(spark, sink)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "roll_forward", die)
        with pytest.raises(Died):
            writer.write(
                batch(spark, 0).withColumnsRenamed({"note": "was"}).withColumn("note", _colon(spark)), 0
            )

    files_writer = opened(spark, sink)

    assert files_writer.has_batch(0)
    assert files_writer.write(batch(spark, 0), 0).is_skipped
    assert not files_writer.place.create(f"{manifest.manifest_folder(files_writer.identity)}/0.json", "{}")
    assert ids(tmp_path / "out") == count_ids(0)
    assert (
        json.loads(
            files_writer.place.text(f"{manifest.manifest_folder(files_writer.identity)}/0.json") or ""
        )["batch"]
        == 0
    )


def _colon(spark: SparkSession) -> Any:
    from pyspark.sql import functions

    assert spark
    return functions.lit("12:00 50%")
