"""A sink that refuses batches: they wait in order, the others go on, and each is delivered once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors import failpoints
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import CheckpointError, MillstreamError, NotReady, Outage
from millstream.engine.delivery import spooling_writer
from millstream.engine.delivery.batch_spool import BatchSpool, list_spooled_batches
from millstream.engine.delivery.spool_replay import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.conftest import Project


class Down:
    """The Delta sink `table` of the project, which can be down, or die after it has committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = Outage("the table is away", "start it")
        self.after = False
        self.written: list[int] = []
        real = DeltaWriter.write

        def write(writer: DeltaWriter, frame: Any, batch_id: int) -> Any:
            if not writer.identity.sink.endswith(":table"):
                return real(writer, frame, batch_id)
            if self.error is not None and not self.after:
                raise self.error
            write_result = real(writer, frame, batch_id)
            self.written.append(batch_id)
            if self.error is not None:
                raise self.error
            return write_result

        monkeypatch.setattr(DeltaWriter, "write", write)
        monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
        monkeypatch.setattr(spooling_writer, "FIRST_PROBE", 0.0)
        # A delivery in the background may take longer than that on a loaded machine.
        monkeypatch.setattr(spooling_writer, "DRAIN", 600.0)


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> Down:
    """The sink is down until a test says otherwise."""
    return Down(monkeypatch)


def pipeline(project: Project) -> Any:
    """`copy` into the table, which may be down, and into files, named in this order."""
    return project.pipeline(
        queries={
            "copy": {
                "from": "orders",
                "to": [
                    {"delta": str(project.folder / "table"), "on_error": "dead_letter"},
                    {"parquet": str(project.folder / "files")},
                ],
            }
        }
    )


def row(id_: str) -> dict[str, object]:
    return {"id": id_, "amount": 1, "at": "2026-01-01T12:01:00Z"}


def ids(project: Project, name: str = "table", form: str = "delta") -> list[str]:
    return [item[0] for item in project.rows(name, form)]


def batches(project: Project) -> list[int]:
    return [batch.batch for batch in list_spooled_batches(pipeline(project), ["copy"])]


@pytest.mark.parametrize("name", ["x[1]", "{a,b}", "a?b", "a%20b"])
def test_rows_are_spooled_in_a_folder_whose_name_could_be_a_pattern(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    spool, other = (
        BatchSpool(tmp_path / folder / "_set_aside" / "copy" / "an-id" / "delta%3Atable")
        for folder in (name, "axb")
    )
    spool.spool(spark.range(3), 0, "the table is away")
    other.spool(spark.range(10, 13), 0, "the table is away")

    (spooled,) = spool.batches()

    assert sorted(row.id for row in spooled.rows(spark).collect()) == [0, 1, 2]


@pytest.mark.usefixtures("down")
def test_the_other_sink_has_every_batch_while_one_is_down(project: Project) -> None:
    project.add_lines(row("a"))
    project.add_lines(row("b"))

    assert project.run(pipeline(project))

    assert ids(project, "files", "parquet") == ["a", "b"]
    assert batches(project) == [0, 1]
    assert [event.data["batch"] for event in project.list_events("set_aside")] == [0, 1]
    assert project.list_events("set_aside")[0].data["reason"] == "the table is away"
    (warning,) = project.list_events("warning")
    assert (warning.query, warning.data["what"]) == (
        "copy",
        "the run ends while 2 batches of query 'copy' wait for sink 'delta:table'",
    )
    assert "'millstream deadletter replay copy'" in warning.data["fix"]


def test_a_run_delivers_what_waits_in_order_before_the_batch_at_hand(project: Project, down: Down) -> None:
    project.add_lines(row("a"))
    project.add_lines(row("b"))
    project.run(pipeline(project))
    down.error = None
    project.add_lines(row("c"))
    project.events.clear()

    project.run(pipeline(project))

    assert [event.data["batches"] for event in project.list_events("still_spooled")] == [2]
    assert [event.data["batches"] for event in project.list_events("delivered_later")] == [1, 0]
    assert project.list_events("warning") == []
    assert down.written == [0, 1, 2]
    assert ids(project) == ["a", "b", "c"]
    assert batches(project) == []


def test_a_refused_batch_is_set_aside_too_and_holds_up_those_after_it(project: Project, down: Down) -> None:
    down.error = MillstreamError("a row is not taken", "mend it")
    project.add_lines(row("a"))
    project.run(pipeline(project))
    project.add_lines(row("b"))
    project.run(pipeline(project))

    assert batches(project) == [0, 1]


def test_a_fenced_sink_ends_the_query(project: Project, down: Down) -> None:
    down.error = CheckpointError("another run writes it", "stop it")
    project.add_lines(row("a"))

    assert not project.run(pipeline(project))

    assert batches(project) == []


def test_a_batch_that_comes_again_is_set_aside_once(project: Project, down: Down) -> None:
    project.add_lines(row("a"))
    project.run(pipeline(project))
    project.forget_last_commit("copy")
    project.run(pipeline(project))
    down.error = None

    replay(project.spark, pipeline(project), ["copy"], None, print)

    assert ids(project) == ["a"]
    assert ids(project, "files", "parquet") == ["a"]


def test_a_sink_that_failed_after_its_commit_gets_nothing_twice(project: Project, down: Down) -> None:
    down.after = True
    project.add_lines(row("a"))
    project.run(pipeline(project))
    down.error = None

    replay(project.spark, pipeline(project), ["copy"], None, print)

    assert ids(project) == ["a"]
    assert batches(project) == []


def test_a_replay_that_failed_in_the_middle_goes_on_where_it_was(project: Project, down: Down) -> None:
    for name in "abc":
        project.add_lines(row(name))
    project.run(pipeline(project))
    down.error = None

    def fail_at_the_second(batch: Any, _: Any) -> None:
        if batch.batch == 0:
            down.error, down.after = Outage("away again", "wait"), True

    with pytest.raises(
        NotReady, match="batch 1 of query 'copy' cannot be delivered to delta:table: away again"
    ):
        replay(project.spark, pipeline(project), ["copy"], None, fail_at_the_second)
    down.error = None
    replay(project.spark, pipeline(project), ["copy"], "delta", print)

    assert ids(project) == ["a", "b", "c"]
    assert batches(project) == []


@pytest.mark.usefixtures("down")
def test_rows_that_wait_keep_their_columns_and_values(project: Project) -> None:
    project.add_lines({"id": None, "amount": None, "at": "2026-01-01T12:01:00.123456Z"}, row("ż"))
    project.run(pipeline(project))

    (batch,) = list_spooled_batches(pipeline(project), ["copy"])
    rows = batch.rows(project.spark)

    files = project.spark.read.parquet(str(project.folder / "files"))
    assert rows.columns == files.columns
    assert sorted(map(str, rows.collect())) == sorted(map(str, files.collect()))


def test_settings_for_other_files_neither_cut_nor_lose_spooled_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    session, spool = spark.newSession(), BatchSpool(tmp_path / "copy" / "3f0c" / "sink")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")

    spool.spool(session.sql("SELECT TIMESTAMP'2026-01-01 12:00:00.123456' AS at"), 0, "away")

    (batch,) = spool.batches()
    (row,) = batch.rows(session).selectExpr("CAST(at AS STRING) AS at").collect()
    assert row.at == "2026-01-01 12:00:00.123456"
    assert session.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MILLIS"
    for file in Path(str(batch.folder)).glob("part-*"):
        file.write_bytes(b"damaged")
    with pytest.raises(Exception, match="is not a Parquet file"):
        batch.rows(session).collect()


@pytest.mark.parametrize("point", ["aside.kept", "aside.delivered"])
def test_a_failure_at_its_worst_moment_loses_and_doubles_nothing(
    project: Project, down: Down, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(failpoints, "_counts", {})
    monkeypatch.setenv(failpoints.VARIABLE, f"{point}=raise@1")
    project.add_lines(row("a"))
    project.run(pipeline(project))
    down.error = None
    for name in "bc":
        project.add_lines(row(name))
        project.run(pipeline(project))

    assert ids(project) == ids(project, "files", "parquet") == ["a", "b", "c"]
    assert down.written == ([0, 0, 1, 2] if point == "aside.delivered" else [0, 1, 2])
    assert batches(project) == []
