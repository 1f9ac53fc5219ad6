"""A run from files to tables: everything once, whatever happens between a sink and Spark's commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint import metadata
from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.api import dead_letters
from millstream.diagnostics.failure import CheckpointError
from millstream.engine import state_memory_watch
from millstream.engine.run import RunOptions, choose_queries, lock_checkpoints
from millstream.pipeline.model import OnMalformed
from millstream.pipeline.stateful import ROCKSDB, STORE
from small_batches import changed_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark.conftest import Project

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}
C = {"id": "c", "amount": 5, "at": "2026-01-01T12:14:00Z"}


@pytest.fixture
def project_with_run(prepared: Callable[..., Project]) -> Project:
    """The project after a run over one row."""

    def run_once(project: Project) -> None:
        project.add_lines(A)
        assert project.run(project.pipeline())

    return prepared("run", run_once)


@pytest.fixture
def project_with_letter(prepared: Callable[..., Project]) -> Project:
    """The project after a run over two rows and a malformed record."""

    def run_once(project: Project) -> None:
        project.add_lines(A, B, "{broken")
        assert project.run(project.pipeline())

    return prepared("run with a dead letter", run_once)


def sums(project: Project) -> list[tuple[str, int]]:
    return [(since.strftime("%H:%M"), amount) for since, amount in project.rows("sums")]


def test_every_sink_of_every_query_gets_every_row(project: Project) -> None:
    project.add_lines(A, B)
    project.add_lines(C)

    fine = project.run(project.pipeline())

    assert fine
    assert sums(project) == [("12:00", 7), ("12:10", 5)]
    assert [row[0] for row in project.rows("files", "parquet")] == ["a", "b", "c"]
    assert [row[0] for row in project.rows("table")] == ["a", "b", "c"]
    committed = [event.data for event in project.list_events("batch_committed") if event.data["rows_in"]]
    assert {data["newest"][:16] for data in committed} == {"2026-01-01T12:02", "2026-01-01T12:14"}
    # The run reads until it has caught up, so the interval of the spec does not apply.
    assert [event.data["trigger_seconds"] for event in project.list_events("query_started")] == [None, None]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_newest_event_is_in_utc_whatever_the_zone_of_the_session(project: Project, zone: str) -> None:
    project.add_lines(A, B)

    with changed_settings(project.spark, {"spark.sql.session.timeZone": zone}):
        assert project.run(project.pipeline(queries={"copy": project.pipeline().queries["copy"]}))

    (data,) = [event.data for event in project.list_events("batch_committed") if event.data["rows_in"]]
    assert data["newest"] == "2026-01-01T12:02:00Z"


def test_a_second_run_goes_on_where_the_first_ended(project_with_run: Project) -> None:
    project = project_with_run
    assert sums(project) == [("12:00", 3)]
    project.add_lines(B)

    project.run(project.pipeline())

    assert sums(project) == [("12:00", 7)]
    assert len(project.rows("table")) == 2


def test_a_batch_that_spark_did_not_commit_is_not_delivered_again(project_with_letter: Project) -> None:
    project = project_with_letter
    before = read_sinks(project)
    assert [len(rows) for rows in before] == [1, 2, 2, 1]

    for query in ("sums", "copy"):
        project.forget_last_commit(query)
    project.run(project.pipeline())

    assert read_sinks(project) == before


def read_sinks(project: Project) -> list[list[tuple[Any, ...]]]:
    """What every sink holds, and the dead letters."""
    return [sums(project), project.rows("files", "parquet"), project.rows("table"), read_sink(project)]


def read_sink(project: Project) -> list[tuple[Any, ...]]:
    """The dead letters: where, what, why."""
    unique = dead_letters.read_unique(project.pipeline().letters)
    return [((letter.file or "").rpartition("/")[2], letter.value, letter.reason) for letter in unique]


def test_a_malformed_row_of_a_source_that_a_query_reads_twice_is_set_aside_once(project: Project) -> None:
    project.add_lines(A, "{broken", B)
    both = "SELECT id, amount, at FROM orders UNION ALL SELECT id, -amount AS amount, at FROM orders"
    copy = {"from": "both", "to": {"delta": str(project.folder / "table")}}

    fine = project.run(project.pipeline(views={"both": both}, queries={"copy": copy}))

    assert fine
    assert sorted(row[1] for row in project.rows("table")) == [-4, -3, 3, 4]
    assert [value for _, value, _ in read_sink(project)] == [b"{broken"]


def test_a_malformed_row_is_set_aside_with_its_file_and_the_others_go_on(project: Project) -> None:
    project.add_lines(A, "{broken")
    project.add_lines({"id": "x", "amount": "many", "at": "2026-01-01T12:05:00Z"}, {"id": "y", "amount": 1})
    project.add_lines(B)

    project.run(project.pipeline())

    assert sums(project) == [("12:00", 7)]
    actual = read_sink(project)
    assert [file for file, _, _ in actual] == ["001.json", "002.json", "002.json"]
    assert (b"{broken", "the record does not fit the schema") in [(value, why) for _, value, why in actual]
    assert "at is missing" in [why for _, _, why in actual]


def test_a_malformed_row_ends_the_run_when_the_spec_says_so(project: Project) -> None:
    project.add_lines(A)
    project.add_lines("{broken")
    pipeline = project.pipeline()
    entry = pipeline.sources["orders"].model_copy(update={"on_malformed": OnMalformed.FAIL})

    fine = project.run(pipeline.model_copy(update={"sources": {"orders": entry}}))

    assert not fine
    # Both queries read the record; whether the second meets it before the first one's end is not said.
    failed = project.list_events("query_failed")[0]
    assert "malformed record in source 'orders'" in failed.data["reason"]
    assert "002.json" in failed.data["reason"]


def test_from_its_first_batch_a_checkpoint_says_what_made_it(project_with_run: Project) -> None:
    result = metadata.read(project_with_run.folder / ".millstream" / "checkpoints" / "sums")

    assert result is not None
    assert [operator.kind for operator in result.operators].count("Aggregate") == 1
    assert result.sources[0]["name"] == "orders"
    assert result.sinks[0]["key"].startswith(result.query_id)
    assert result.pinned["spark.sql.shuffle.partitions"] == "2"


def test_another_aggregate_has_another_fingerprint(project_with_run: Project) -> None:
    project = project_with_run
    checkpoint = project.folder / ".millstream" / "checkpoints" / "sums"
    before = metadata.read(checkpoint)
    sql = "SELECT window.start AS since, max(amount) AS amount FROM orders GROUP BY window(at, '10 minutes')"
    changed, once = (
        project.pipeline(views={"sums": {"sql": sql}}),
        RunOptions(("sums",), until_caught_up=True),
    )
    with pytest.raises(
        CheckpointError, match="has changed and cannot continue from its checkpoint"
    ) as refusal:
        project.run(changed, once)
    code = refusal.value.fix.partition("--accept ")[2].split("'")[0].split()[0]
    project.run(changed, replace(once, accept=(code,)))
    after = metadata.read(checkpoint)

    assert before is not None
    assert after is not None
    assert {operator.fingerprint for operator in before.operators} != {
        operator.fingerprint for operator in after.operators
    }


def test_a_selected_query_runs_alone(project: Project) -> None:
    project.add_lines(A)

    project.run(project.pipeline(), RunOptions(select=("sums",), until_caught_up=True))

    assert sums(project) == [("12:00", 3)]
    assert not (project.folder / "table").exists()


def test_queries_stay_in_the_order_of_the_spec(project: Project) -> None:
    pipeline = project.pipeline()

    assert choose_queries(pipeline, RunOptions()) == ["sums", "copy"]
    assert choose_queries(pipeline, RunOptions(exclude=("sums",))) == ["copy"]


def test_a_checkpoint_that_is_held_is_refused(project: Project) -> None:
    from contextlib import ExitStack

    pipeline = project.pipeline()
    folder = project.folder / ".millstream" / "checkpoints" / "copy"
    with (
        CheckpointLock(folder, "another.copy"),
        ExitStack() as exit_stack,
        pytest.raises(CheckpointError, match=r"another\.copy"),
    ):
        lock_checkpoints(pipeline, ["sums", "copy"], exit_stack)


def test_batches_run_in_the_pool_that_the_spec_names(project: Project) -> None:
    project.add_lines(A)
    pipeline = project.pipeline()
    query = pipeline.queries["copy"].model_copy(update={"pool": f"later_{project.folder.name}"})
    assert query.pool not in pools(project)

    project.run(pipeline.model_copy(update={"queries": {**pipeline.queries, "copy": query}}))

    assert {query.pool, "sums"} <= pools(project)


def pools(project: Project) -> set[str]:
    """The pools in which Spark has run a task."""
    actual: Any = project.spark.sparkContext._jsc.sc().getAllPools()
    return {actual.apply(index).name() for index in range(actual.size())}


@pytest.mark.parametrize("store", ["in_memory", "rocksdb"])
def test_state_in_the_heap_is_told_and_state_on_disk_is_not(
    project: Project, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.setattr(state_memory_watch, "LEAST", 1)
    monkeypatch.setattr(state_memory_watch, "WARNING", 1e-9)
    project.add_lines(A, B)

    with changed_settings(project.spark, {STORE: ROCKSDB} if store == "rocksdb" else {}):
        project.run(project.pipeline())

    stores = {event.query: event.data["state_store"] for event in project.list_events("batch_committed")}
    assert stores == {"sums": store, "copy": None}
    warnings = [event for event in project.list_events("warning") if "of state" in event.data["what"]]
    assert [event.query for event in warnings][:1] == (["sums"] if store == "in_memory" else [])
    heap = {event.data["heap_bytes"] for event in warnings}
    assert heap <= {project.spark._jvm.java.lang.Runtime.getRuntime().maxMemory()}


def test_a_chosen_query_runs_before_the_table_exists_that_another_query_reads(project: Project) -> None:
    project.add_lines(A, B)
    feed = {"delta": {"path": str(project.folder / "table"), "change_feed": True}, "schema": {"id": "string"}}
    pipeline = project.pipeline()
    spec = {
        "sources": {"orders": pipeline.sources["orders"], "changes": feed},
        "queries": {
            "orders": {"to": {"delta": str(project.folder / "table")}},
            "changes": {"to": {"delta": str(project.folder / "copy")}},
        },
    }

    fine = project.run(project.pipeline(**spec), RunOptions(select=("orders",), until_caught_up=True))

    assert fine
    assert [row[0] for row in project.rows("table")] == ["a", "b"]
