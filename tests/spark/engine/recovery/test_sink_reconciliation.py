"""A checkpoint that does not fit what its sinks hold: deleted, copied, taken back; noticed before a row."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from delta_tables import read_parquet_rows, read_rows
from millstream.backfill.batches import backfill_batches
from millstream.backfill.sink_write import open_backfill_write
from millstream.backfill.targets import BackfillTarget
from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.delta.commit import small_merge
from millstream.diagnostics.failure import CheckpointError, InvalidInput
from millstream.engine.run import RunOptions
from millstream.spec.output_mode import OutputMode
from spark.conftest import Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}
C = {"id": "c", "amount": 5, "at": "2026-01-01T12:14:00Z"}


def checkpoint(project: Project, query: str = "copy") -> Path:
    return project.folder / ".millstream" / "checkpoints" / query


def run(project: Project, query: str = "copy", *, adopt: bool = False, **changes: Any) -> bool:
    """Run one query until it is caught up."""
    options = RunOptions((query,), until_caught_up=True, adopt=adopt)
    return project.run(project.pipeline(**changes), options)


def one_sink(**sink: Any) -> dict[str, Any]:
    """The pipeline with a query `copy` into one sink."""
    return {"queries": {"copy": {"from": "orders", "to": [sink]}}}


SINKS = {
    "delta": lambda folder: {"delta": str(folder / "out")},
    "parquet": lambda folder: {"parquet": str(folder / "out")},
    "by_batch": lambda folder: {"parquet": {"path": str(folder / "out"), "layout": "by_batch"}},
}


EACH = pytest.mark.parametrize("spec", SINKS, indirect=True)
# In a part a layout of files, which differs from test to test, and Delta where its own log decides. What the ledger
# of each kind says is compared in tests/conformance.
FILES = pytest.mark.sweep(by=lambda spec: [spec in SINKS], cost=lambda spec: 2 if spec == "delta" else 1)
DELTA_AND_FILES = pytest.mark.sweep(by=lambda spec: [spec == "delta"])


@pytest.fixture
def project(request: pytest.FixtureRequest, prepared: Callable[..., Project]) -> Project:
    """A fresh project, or one with the query of `spec` for a test that asks for it."""
    if "spec" not in request.fixturenames:
        return Project(request.getfixturevalue("tmp_path"), request.getfixturevalue("spark"))
    sink = SINKS[kind := kind_of(request)]

    def deliver_two(project: Project) -> None:
        for row in (A, B):
            project.add_lines(row)
            assert run(project, **one_sink(**sink(project.folder)))

    return prepared(f"sink_reconciliation {kind}", deliver_two)


@pytest.fixture
def spec(request: pytest.FixtureRequest, project: Project) -> dict[str, Any]:
    """A query that has delivered two batches to one sink."""
    return one_sink(**SINKS[kind_of(request)](project.folder))


def kind_of(request: pytest.FixtureRequest) -> str:
    """The sink that a test asks for."""
    callspec = getattr(request.node, "callspec", None)
    return callspec.params.get("spec", "parquet") if callspec else "parquet"


def take_back(project: Project) -> None:
    """Forget batch 1, as the restore of an older copy does."""
    for log in ("offsets", "commits"):
        for name in ("1", ".1.crc"):
            (checkpoint(project) / log / name).unlink(missing_ok=True)


def ids(project: Project, spec: dict[str, Any], name: str = "out") -> list[str]:
    form = next(iter(spec["queries"]["copy"]["to"][0]))
    read = {"delta": read_rows, "parquet": read_parquet_rows}[form]
    return sorted(id_ for (id_,) in read(project.folder / name, "id"))


def run_until_refused(project: Project) -> Any:
    """The last words of the query: why it was refused, and what may be done."""
    (failed,) = project.list_events("query_failed")
    assert failed.data["cause"] == "checkpoint"
    return failed.data


@EACH
@DELTA_AND_FILES
def test_a_deleted_checkpoint_is_noticed_before_a_row_is_written(
    project: Project, spec: dict[str, Any]
) -> None:
    shutil.rmtree(checkpoint(project))

    assert not run(project, **spec)

    output = run_until_refused(project)
    assert "from another checkpoint" in output["reason"]
    assert all(word in output["fix"] for word in ("--adopt", "rm -r", "another target"))
    assert ids(project, spec) == ["a", "b"]


@EACH
@FILES
def test_adopted_what_is_there_stays_and_later_starts_need_nothing(
    project: Project, spec: dict[str, Any]
) -> None:
    shutil.rmtree(checkpoint(project))

    assert run(project, adopt=True, **spec)
    project.add_lines(C)
    assert run(project, **spec)

    assert ids(project, spec) == ["a", "a", "b", "b", "c"]
    assert [event.data["batch"] for event in project.list_events("adopted")] == [1]


def test_an_adoption_is_remembered_before_the_first_batch(project: Project, spec: dict[str, Any]) -> None:
    shutil.rmtree(checkpoint(project))
    path = project.folder / "in"
    path.rename(project.folder / "away")
    path.mkdir()

    assert run(project, adopt=True, **spec)
    assert run(project, **spec)

    assert ids(project, spec) == ["a", "b"]


def test_a_cleared_sink_may_be_filled_afresh(project: Project, spec: dict[str, Any]) -> None:
    shutil.rmtree(checkpoint(project))
    shutil.rmtree(project.folder / "out")

    assert run(project, **spec)

    assert ids(project, spec) == ["a", "b"]


def test_the_checkpoint_that_was_taken_over_from_is_refused_in_turn(
    project: Project, spec: dict[str, Any]
) -> None:
    before = project.folder / "before"
    checkpoint(project).rename(before)
    assert run(project, adopt=True, **spec)
    shutil.rmtree(checkpoint(project))
    before.rename(checkpoint(project))
    project.add_lines(C)

    assert not run(project, **spec)

    assert "since this checkpoint did" in run_until_refused(project)["reason"]


def test_a_copy_that_went_another_way_is_refused(project: Project, spec: dict[str, Any]) -> None:
    shutil.copytree(checkpoint(project), project.folder / "copy-of-it")
    project.add_lines(C)
    assert run(project, **spec)
    shutil.rmtree(checkpoint(project))
    (project.folder / "copy-of-it").rename(checkpoint(project))

    assert not run(project, **spec)

    assert "older than the sink" in run_until_refused(project)["reason"]
    assert ids(project, spec) == ["a", "b", "c"]


def test_a_batch_planned_anew_under_a_number_that_the_sink_has_is_refused(
    project: Project, spec: dict[str, Any]
) -> None:
    take_back(project)
    # Another query, without this sink, plans batch 1 again at another time and so with other offsets.
    other = one_sink(memory="elsewhere")
    assert run(project, **other)

    assert not run(project, **spec)

    assert "with other offsets" in run_until_refused(project)["reason"]


def test_a_checkpoint_that_was_taken_back_goes_on_under_another_id_when_adopted(
    project: Project, spec: dict[str, Any]
) -> None:
    take_back(project)

    assert not run(project, **spec)
    assert "--adopt" in run_until_refused(project)["fix"]
    assert run(project, adopt=True, **spec)
    project.add_lines(C)
    assert run(project, **spec)

    assert ids(project, spec) == ["a", "b", "b", "c"]


@EACH
@FILES
def test_two_queries_into_one_target_are_no_strangers(project: Project, spec: dict[str, Any]) -> None:
    (query,) = spec["queries"].values()
    both = {"queries": {**spec["queries"], "second": query}}

    assert run(project, "second", **both)
    project.add_lines(C)
    assert run(project, "copy", **both)
    assert run(project, "second", **both)

    assert ids(project, spec) == ["a", "a", "b", "b", "c", "c"]


def test_another_pipeline_into_the_same_target_is_no_stranger(project: Project, spec: dict[str, Any]) -> None:
    assert run(project, **spec, name="other", defaults={"checkpoints": str(project.folder / "others")})

    assert ids(project, spec) == ["a", "a", "b", "b"]


def test_rows_that_replace_rows_by_key_are_a_warning_and_come_out_right(project: Project) -> None:
    project.add_lines(A)
    project.add_lines(C)
    assert run(project, "sums")
    before = project.rows("sums")
    shutil.rmtree(checkpoint(project, "sums"))

    assert run(project, "sums")
    assert run(project, "sums")

    assert project.rows("sums") == before
    (event,) = project.list_events("warning")
    assert "from another checkpoint" in event.data["what"]


def test_update_mode_by_batch_cannot_be_taken_over(project: Project) -> None:
    sink = {"parquet": {"path": str(project.folder / "out"), "layout": "by_batch"}}
    spec = {"queries": {"copy": {"from": "sums", "output_mode": "update", "to": [sink]}}}
    project.add_lines(A)
    assert run(project, **spec)
    shutil.rmtree(checkpoint(project))

    assert not run(project, adopt=True, **spec)

    output = run_until_refused(project)
    assert "starts at 0 again" in output["reason"]
    assert "--adopt" not in output["fix"]


@pytest.mark.parametrize("most_rows", [small_merge.MOST_ROWS, 0], ids=["delta-rs", "Spark"])
def test_a_batch_that_deletes_only_rows_that_a_table_never_had_is_not_missing(
    most_rows: int, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_merge, "MOST_ROWS", most_rows)
    table = {"path": str(project.folder / "out"), "merge_on": ["id"], "delete_when": "amount < 0"}
    spec = one_sink(delta=table)
    for row in (A, {"id": "never there", "amount": -1, "at": "2026-01-01T12:03:00Z"}, B):
        project.add_lines(row)

        assert run(project, **spec)

    assert ids(project, spec) == ["a", "b"]
    assert project.list_events("warning") == []


def keep(project: Project, spec: dict[str, Any]) -> None:
    """One more batch, with a copy of the sink as it was before."""
    shutil.copytree(project.folder / "out", project.folder / "before")
    project.add_lines(C)
    assert run(project, **spec)


def restore(project: Project) -> None:
    """Put the sink back as it was before its last batch."""
    shutil.rmtree(project.folder / "out")
    (project.folder / "before").rename(project.folder / "out")


@EACH
@DELTA_AND_FILES
def test_a_sink_that_was_restored_is_noticed_before_a_row_is_written(
    project: Project, spec: dict[str, Any]
) -> None:
    keep(project, spec)
    restore(project)
    project.add_lines({"id": "d", "amount": 6, "at": "2026-01-01T12:15:00Z"})

    assert not run(project, **spec)

    output = run_until_refused(project)
    assert "lacks batch 2 of query 'copy'" in output["reason"]
    assert "'millstream backfill copy --batches 2'" in output["fix"]
    assert ids(project, spec) == ["a", "b"]
    assert run(project, adopt=True, **spec)
    assert run(project, **spec)
    assert ids(project, spec) == ["a", "b", "d"]


@EACH
@FILES
def test_exactly_the_batches_that_a_restored_sink_lacks_are_written_and_the_run_goes_on(
    project: Project, spec: dict[str, Any]
) -> None:
    keep(project, spec)
    project.add_lines({"id": "d", "amount": 6, "at": "2026-01-01T12:15:00Z"})
    assert run(project, **spec)
    restore(project)
    project.add_lines({"id": "e", "amount": 7, "at": "2026-01-01T12:16:00Z"})

    with (
        CheckpointLock(checkpoint(project), "shop.copy"),
        pytest.raises(CheckpointError, match="is held by 'shop"),
    ):
        fill(project, spec, 2, 3)
    with pytest.raises(InvalidInput, match="also lacks the earlier batch 2"):
        fill(project, spec, 3)
    assert fill(project, spec, 2, 3, dry=True) == [(2, 1), (3, 1)]
    assert ids(project, spec) == ["a", "b"]
    assert [batch for batch, _ in fill(project, spec, 2, 3)] == [2, 3]
    assert ids(project, spec) == ["a", "b", "c", "d"]
    assert fill(project, spec, 2, 3) == []
    assert run(project, **spec)

    assert ids(project, spec) == ["a", "b", "c", "d", "e"]


def fill(project: Project, spec: dict[str, Any], *batches: int, dry: bool = False) -> list[tuple[int, Any]]:
    """A backfill of single batches: which were written, with their rows."""
    pipeline = project.pipeline(**spec)
    outcomes = backfill_batches(project.spark, pipeline, "copy", batches, print, dry=dry).outcomes
    return [(outcome.batch, outcome.rows) for outcome in outcomes]


def test_a_query_with_state_is_told_what_can_be_done_about_batches_that_its_sink_lacks(
    project: Project,
) -> None:
    for row in (A, C):
        project.add_lines(row)
        assert run(project, "sums")
    shutil.copytree(project.folder / "sums", project.folder / "before")
    # Nothing to merge: the second batch of this start only moves the watermark.
    project.add_lines({"id": "z", "amount": 1, "at": "2026-01-01T13:00:00Z"})
    assert run(project, "sums")
    assert run(project, "sums")
    shutil.rmtree(project.folder / "sums")
    (project.folder / "before").rename(project.folder / "sums")

    assert not run(project, "sums")

    (failed,) = project.list_events("query_failed")
    assert "lacks batch" in failed.data["reason"]
    assert "the query has state" in failed.data["fix"]
    assert "'millstream run --adopt --select sums'" in failed.data["fix"]
    with pytest.raises(InvalidInput, match="the query has state"):
        backfill_batches(project.spark, project.pipeline(), "sums", [1], print)


def test_batches_are_not_written_where_a_backfill_may_have_brought_their_rows(
    project: Project, spec: dict[str, Any]
) -> None:
    keep(project, spec)
    restore(project)
    pipeline = project.pipeline(**spec)
    (sink,) = (entry.sink for entry in pipeline.queries["copy"].to)
    target = BackfillTarget("copy", "parquet:out", sink, OutputMode.APPEND, side=False)
    missing = project.spark.sql("SELECT 'c' AS id, 5 AS amount, TIMESTAMP'2026-01-01 12:14:00Z' AS at")
    open_backfill_write(project.spark, pipeline, target, missing.schema, None)(missing)

    with pytest.raises(InvalidInput, match="would be written twice"):
        fill(project, spec, 2)

    assert run(project, adopt=True, **spec)
    assert ids(project, spec) == ["a", "b", "c"]


@EACH
@FILES
def test_a_query_that_is_renamed_together_with_its_checkpoint_goes_on(
    project: Project, spec: dict[str, Any]
) -> None:
    checkpoint(project).rename(checkpoint(project, "second"))
    renamed = {"queries": {"second": spec["queries"]["copy"]}}
    project.add_lines(C)

    assert run(project, "second", **renamed)

    assert ids(project, spec) == ["a", "b", "c"]
