"""A query with a new checkpoint over filled sinks: each row is right, and none is there twice or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.backfill.fresh_start import PastChoice, find_conflict
from millstream.checkpoint import former_checkpoint
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors import failpoints
from millstream.diagnostics.failure import CheckpointError, InvalidInput, MillstreamError
from millstream.engine.recovery.checkpoint_check import check_checkpoints
from spark.backfill.conftest import order, share_table

if TYPE_CHECKING:
    from pathlib import Path

    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

BEFORE, NOW = "window(at, '10 minutes')", "window(at, '1 hour')"
# The five orders of the shop, with windows of an hour: none is closed, because the watermark is at 12:50.
HOURS = [("12:00", 4, 18), ("13:00", 1, 7)]


def windows(shop: Shop, name: str) -> list[tuple[Any, ...]]:
    return [(since.strftime("%H:%M"), n, amount) for since, n, amount in shop.rows(name)]


def checkpoint(shop: Shop, query: str) -> Path:
    folder: Path = shop.folder / "checkpoints" / query
    return folder


@pytest.fixture
def changed(streamed: Shop) -> Shop:
    """A shop that has run with windows of ten minutes, and now has windows of an hour."""
    streamed.spec = streamed.spec.replace(BEFORE, NOW)
    return streamed


@pytest.mark.whole  # killed before its checkpoint is replaced, a query is refused and renewed below
def test_a_changed_window_is_refused_until_the_query_has_a_new_checkpoint(changed: Shop) -> None:
    with pytest.raises(CheckpointError, match="has changed and cannot continue from its checkpoint"):
        changed.stream("sums")

    backup = changed.renew("sums", PastChoice.BACKFILL)
    changed.stream("sums")

    assert windows(changed, "sums") == HOURS
    assert Checkpoint(backup).committed() is not None


def test_both_tables_are_as_if_the_window_had_always_been_so_and_a_late_row_stays_late(changed: Shop) -> None:
    """The table with keys has rows of open windows, the other one none. A row of 11:00 comes after the watermark."""
    for query in ("sums", "closed"):
        changed.renew(query, PastChoice.BACKFILL)
    changed.add_lines(order("late", "11:00:00", 1000), order("f", "12:59:00", 1))
    changed.add_lines(order("g", "15:00:00", 2))
    changed.stream("sums", "closed")

    hours = [("12:00", 5, 19), ("13:00", 1, 7), ("15:00", 1, 2)]
    assert windows(changed, "sums") == hours
    assert windows(changed, "closed") == hours[:2]


def test_windows_that_are_closed_are_replaced_in_the_sinks_and_not_written_again(shop: Shop) -> None:
    """At 14:50 the hours from 12:00 and 13:00 are closed. The row of a window without a successor is deleted."""
    shop.add_lines(order("f", "15:00:00", 2))
    shop.stream("sums", "closed")
    shop.spec = shop.spec.replace(BEFORE, NOW)

    for query in ("sums", "closed"):
        shop.renew(query, PastChoice.BACKFILL)
    assert windows(shop, "closed") == windows(shop, "sums") == HOURS
    shop.add_lines(order("late", "12:30:00", 1000), order("g", "16:30:00", 1))
    shop.stream("sums", "closed")

    assert windows(shop, "sums") == [*HOURS, ("15:00", 1, 2), ("16:00", 1, 1)]
    assert windows(shop, "closed") == [*HOURS, ("15:00", 1, 2)]


def test_a_query_without_state_reads_on_where_it_was_with_its_past_recomputed(streamed: Shop) -> None:
    streamed.spec = streamed.spec.replace("to: [{delta: copy}, {parquet: files}]", "to: [{delta: copy}]")

    streamed.renew("copy", PastChoice.BACKFILL)
    streamed.add_lines(order("f", "13:10:00"))
    streamed.stream("copy")

    assert [row[0] for row in streamed.rows("copy")] == ["a", "b", "c", "d", "e", "f"]


def test_a_query_whose_state_has_no_border_computes_all_rows_anew(shop: Shop) -> None:
    totals = "SELECT amount % 2 AS odd, count(*) AS n FROM orders GROUP BY amount % 2"
    query = "  totals: {output_mode: update, to: {delta: {path: t, merge_on: [odd]}}}"
    shop.spec = shop.spec.replace("queries:\n", f"  totals: {totals}\nqueries:\n{query}\n")
    shop.stream("totals")
    shop.spec = shop.spec.replace("amount % 2", "amount % 3")

    shop.renew("totals", PastChoice.BACKFILL)
    assert shop.rows("t") == []
    shop.stream("totals")

    assert shop.rows("t") == [(0, 2), (1, 2), (2, 1)]


def test_rows_stay_and_later_input_is_read_once_without_the_state(changed: Shop) -> None:
    before = windows(changed, "closed")

    changed.renew("closed", PastChoice.CONTINUE)
    changed.add_lines(order("late", "11:00:00", 1000), order("f", "13:10:00", 1), order("g", "15:00:00", 2))
    changed.stream("closed")

    assert windows(changed, "closed") == sorted([*before, ("13:00", 1, 1)])


def test_every_sink_has_each_row_once_if_the_rows_stay(streamed: Shop) -> None:
    streamed.renew("copy", PastChoice.CONTINUE)
    streamed.add_lines(order("f", "13:10:00"))
    streamed.stream("copy")

    for name, form in (("copy", "delta"), ("files", "parquet")):
        assert [row[0] for row in streamed.rows(name, form)] == ["a", "b", "c", "d", "e", "f"]


def test_what_has_not_been_read_is_skipped_if_asked_for(streamed: Shop) -> None:
    streamed.add_lines(order("skipped", "13:05:00"))

    streamed.renew("copy", PastChoice.NOW)
    streamed.add_lines(order("f", "13:10:00"))
    streamed.stream("copy")

    assert [row[0] for row in streamed.rows("copy")] == ["a", "b", "c", "d", "e", "f"]


def test_a_fresh_checkpoint_that_has_run_no_batch_may_be_replaced_again(changed: Shop) -> None:
    changed.renew("sums", PastChoice.BACKFILL)
    changed.spec = changed.spec.replace("1 hour", "30 minutes")

    changed.renew("sums", PastChoice.BACKFILL)
    changed.stream("sums")

    assert windows(changed, "sums") == [("12:00", 4, 18), ("13:00", 1, 7)]


# tests/recovery/test_killed_apply.py kills a process where the checkpoint is replaced, and finishes it.
@pytest.mark.parametrize(
    "point",
    ["renewal.prepared", pytest.param("renewal.replaced", marks=pytest.mark.whole), "renewal.filled"],
)
def test_killed_at_any_point_the_query_is_refused_or_finished_and_then_right(
    changed: Shop, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, f"{point}=raise")
    monkeypatch.setattr(failpoints, "_counts", {})
    with pytest.raises(MillstreamError, match="failed on purpose"):
        changed.renew("sums", PastChoice.BACKFILL)
    monkeypatch.delenv(failpoints.VARIABLE)

    pipeline, _ = changed.load("sums")
    former = former_checkpoint.read(checkpoint(changed, "sums"))
    if former is None:
        with pytest.raises(CheckpointError, match="has changed and cannot continue from its checkpoint"):
            changed.stream("sums")
        backup = changed.renew("sums", PastChoice.BACKFILL)
        assert Checkpoint(backup).committed() is not None
    else:
        with pytest.raises(CheckpointError, match="in its sinks are not replaced yet"):
            check_checkpoints(pipeline, ["sums"])
        changed.finish("sums")
    check_checkpoints(pipeline, ["sums"])
    changed.stream("sums")

    assert (former is None) == (point == "renewal.prepared")
    assert windows(changed, "sums") == HOURS


def test_an_interrupted_backfill_may_be_given_up_and_the_rows_stay(
    changed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = windows(changed, "closed")
    monkeypatch.setenv(failpoints.VARIABLE, "renewal.replaced=raise")
    monkeypatch.setattr(failpoints, "_counts", {})
    with pytest.raises(MillstreamError, match="failed on purpose"):
        changed.renew("closed", PastChoice.BACKFILL)
    monkeypatch.delenv(failpoints.VARIABLE)

    changed.renew("closed", PastChoice.CONTINUE)
    changed.add_lines(order("f", "13:10:00", 1), order("g", "15:00:00", 2))
    pipeline, _ = changed.load("closed")
    check_checkpoints(pipeline, ["closed"])
    changed.stream("closed")

    assert windows(changed, "closed") == sorted([*before, ("13:00", 1, 1)])


def test_a_batch_that_is_not_finished_is_finished_first(changed: Shop) -> None:
    newest = Checkpoint(checkpoint(changed, "sums")).committed()
    (checkpoint(changed, "sums") / "commits" / str(newest)).unlink()

    with pytest.raises(CheckpointError, match=f"batch {newest} .* is planned but not committed"):
        changed.renew("sums", PastChoice.BACKFILL)


def test_a_table_that_another_query_also_writes_is_not_replaced(streamed: Shop) -> None:
    streamed.spec = share_table(streamed.spec)
    pipeline = streamed.loaded().pipeline
    assert pipeline is not None

    conflict = find_conflict(pipeline, "copy", PastChoice.BACKFILL)

    assert conflict.endswith("query 'other' also writes it, and the rows of that query would be deleted")
    assert find_conflict(pipeline, "copy", PastChoice.CONTINUE) == ""


def test_a_replacement_that_was_interrupted_spares_a_table_that_another_query_also_writes(
    streamed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed.spec = streamed.spec.replace("[{delta: copy}, {parquet: files}]", "{delta: copy}")
    monkeypatch.setenv(failpoints.VARIABLE, "renewal.replaced=raise")
    monkeypatch.setattr(failpoints, "_counts", {})
    with pytest.raises(MillstreamError, match="failed on purpose"):
        streamed.renew("copy", PastChoice.BACKFILL)
    monkeypatch.delenv(failpoints.VARIABLE)
    streamed.spec = share_table(streamed.spec)

    with pytest.raises(InvalidInput, match="query 'other' also writes it") as error:
        streamed.finish("copy")

    assert error.value.fix == "keep the rows: --past continue"
    assert [row[0] for row in streamed.rows("copy")] == ["a", "b", "c", "d", "e"]


def test_files_cannot_be_replaced_and_nothing_is_offered_that_would_double_rows(shop: Shop) -> None:
    pipeline = shop.loaded().pipeline
    assert pipeline is not None

    assert "parquet" in find_conflict(pipeline, "copy", PastChoice.BACKFILL)
    assert find_conflict(pipeline, "copy", PastChoice.CONTINUE) == ""
