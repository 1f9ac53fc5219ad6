"""What a backfill writes, once, beside a query that may be running."""

from __future__ import annotations

import queue
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from millstream.backfill.sink_write import open_backfill_write
from millstream.backfill.targets import BackfillTarget
from millstream.checkpoint.lock import CheckpointLock
from millstream.diagnostics.failure import CheckpointError, InvalidInput, MillstreamError
from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.spec.output_mode import OutputMode
from spark.backfill.conftest import SPEC, figures, order, share_table

if TYPE_CHECKING:
    from millstream.backfill.report import BackfillReport
    from millstream.engine.supervisor import Supervisor
    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")


def count_written(report: BackfillReport) -> tuple[int, int, int]:
    """Rows added, changed and deleted in the first sink."""
    sink_outcome = report.outcomes[0]
    return sink_outcome.added, sink_outcome.changed, sink_outcome.deleted


def sums(shop: Shop, name: str = "sums") -> list[tuple[Any, ...]]:
    return [(since.strftime("%H:%M"), n, amount) for since, n, amount in shop.rows(name)]


ALL = [("12:00", 2, 7), ("12:10", 1, 5), ("12:20", 1, 6)]
KEYED = SPEC.replace("[{delta: copy}, {parquet: files}]", "{delta: {path: copy, merge_on: [id]}}")


def test_a_table_with_keys_gets_its_missing_and_changed_rows_back(streamed: Shop) -> None:
    streamed.delete("sums", "since = '2026-01-01T12:00:00Z'")
    streamed.update("sums", "since = '2026-01-01T12:10:00Z'", amount="0")

    report = streamed.backfill("sums", start="2026-01-01", end="2026-01-01 12:30")

    assert (count_written(report), sums(streamed)[:3]) == ((1, 1, 0), ALL)


def test_equal_rows_come_back_as_often_as_they_are_missing(shop: Shop) -> None:
    shop.spec = SPEC.replace("[{delta: copy}, {parquet: files}]", "{delta: copy}")
    shop.add_lines(order("a", "12:01:00", 3), order("a", "12:01:00", 3))
    shop.stream("copy")
    shop.delete("copy", "id = 'a'")

    shop.backfill("copy")

    assert [row[0] for row in shop.rows("copy")].count("a") == 3


def test_files_get_what_is_missing(streamed: Shop) -> None:
    next(file for file in sorted((streamed.folder / "files").glob("part-*"))).unlink()

    report = streamed.backfill("copy", sink="parquet")

    assert report.outcomes[0].added > 0
    assert [row[0] for row in streamed.rows("files", "parquet")] == ["a", "b", "c", "d", "e"]


def test_a_table_that_is_only_added_to_gets_each_row_that_is_missing_and_nothing_else(streamed: Shop) -> None:
    streamed.delete("copy", "id IN ('a', 'b')")
    first = streamed.backfill("copy", sink="delta")
    rows, versions = (
        streamed.rows("copy"),
        len(list((streamed.folder / "copy" / "_delta_log").glob("*.json"))),
    )

    second = streamed.backfill("copy", sink="delta")
    versions_after_second = len(list((streamed.folder / "copy" / "_delta_log").glob("*.json")))
    # A row that was lost and came back is lost once more.
    streamed.delete("copy", "id = 'a'")
    streamed.backfill("copy", sink="delta")

    assert (count_written(first), count_written(second)) == ((2, 0, 0), (0, 0, 0))
    assert [row[0] for row in rows] == ["a", "b", "c", "d", "e"]
    assert versions_after_second == versions
    assert streamed.rows("copy") == rows


def test_surplus_rows_stay_unless_the_range_is_replaced(streamed: Shop) -> None:
    streamed.insert("sums", since=datetime(2026, 1, 1, 9, tzinfo=UTC), n=1, amount=1)
    range_ = {"start": "2026-01-01", "end": "2026-01-01 12:30"}

    backfill = streamed.backfill("sums", **range_)
    assert (count_written(backfill), sums(streamed)[0]) == ((0, 0, 0), ("09:00", 1, 1))

    report = streamed.backfill("sums", replace=True, **range_)

    assert (count_written(report), sums(streamed)[:3]) == ((0, 0, 1), ALL)
    # What lies outside of the range is not touched.
    assert sums(streamed)[3] == ("13:00", 1, 7)


def test_rows_without_a_key_are_replaced_in_one_commit(streamed: Shop) -> None:
    streamed.update("copy", "id = 'b'", amount="0")

    report = streamed.backfill(
        "copy", sink="delta", start="2026-01-01 12:00", end="2026-01-01 12:10", replace=True
    )

    assert count_written(report) == (1, 0, 1)
    assert [(row[0], row[1]) for row in streamed.rows("copy")] == [
        ("a", 3),
        ("b", 4),
        ("c", 5),
        ("d", 6),
        ("e", 7),
    ]


def test_rows_of_another_query_in_the_same_table_are_not_replaced(shop: Shop) -> None:
    shop.spec = share_table(SPEC)
    shop.stream("copy", "other")

    with pytest.raises(InvalidInput, match="cannot be replaced: query 'other' also writes it"):
        shop.backfill("copy", start="2026-01-01", replace=True)
    shop.delete("copy")
    report = shop.backfill("copy", start="2026-01-01")

    assert count_written(report) == (5, 0, 0)
    assert [row[0] for row in shop.rows("copy")] == ["a", "b", "c", "d", "e"]


def test_the_table_of_another_query_is_not_replaced(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match="query 'copy' also writes it"):
        shop.backfill("closed", into="copy", start="2026-01-01", replace=True)


def test_replace_needs_a_range(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match="--replace needs a range"):
        shop.backfill("copy", sink="delta", replace=True)


def test_files_are_never_taken_away(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match="cannot delete rows"):
        shop.backfill("copy", sink="parquet", start="2026-01-01", replace=True)


def test_a_side_table_gets_the_whole_answer_and_the_own_one_nothing(shop: Shop) -> None:
    report = shop.backfill("sums", into="side")

    assert count_written(report) == (4, 0, 0)
    assert sums(shop, "side")[:3] == ALL
    assert not (shop.folder / "sums").exists()
    assert count_written(shop.backfill("sums", into="side")) == (0, 0, 0)


def test_a_dry_run_tells_what_would_be_written_and_writes_nothing(shop: Shop) -> None:
    report = shop.backfill("sums", is_dry_run=True)

    assert (count_written(report), report.rows_read) == ((4, 0, 0), {"sums": {"orders": 5}})
    assert not (shop.folder / "sums").exists()


def test_windows_that_the_query_still_updates_are_left_to_it(streamed: Shop) -> None:
    streamed.update("sums", amount="0")

    streamed.backfill("sums")

    assert sums(streamed) == [*ALL, ("13:00", 1, 0)]


def test_a_range_that_the_query_has_yet_to_write_is_refused(streamed: Shop) -> None:
    with pytest.raises(InvalidInput, match="has not reached the end of this range"):
        streamed.backfill("sums", start="2026-01-01 13:00")


def test_a_table_that_is_replaced_with_each_batch_is_refused(shop: Shop) -> None:
    shop.spec = SPEC.replace("output_mode: update, to: {delta: {path: sums, merge_on: [since]}}",
                             "output_mode: complete, to: {delta: {path: sums}}")  # fmt: skip

    with pytest.raises(InvalidInput, match="each batch of the query replaces all rows"):
        shop.backfill("sums")


def test_no_lock_is_taken_and_no_checkpoint_written(streamed: Shop) -> None:
    folder = streamed.folder / "checkpoints" / "copy"
    before = sorted((file, file.stat().st_mtime_ns) for file in folder.rglob("*"))

    with CheckpointLock(folder, "shop.copy"):
        stored = sorted((file, file.stat().st_mtime_ns) for file in folder.rglob("*"))
        streamed.delete("copy", "id = 'a'")
        streamed.backfill("copy", sink="delta")
        assert sorted((file, file.stat().st_mtime_ns) for file in folder.rglob("*")) == stored

    assert len(before) <= len(stored)


def test_rows_are_not_taken_away_under_a_query_that_writes_them(streamed: Shop) -> None:
    with (
        CheckpointLock(streamed.folder / "checkpoints" / "copy", "shop.copy"),
        pytest.raises(CheckpointError, match=r"is held by 'shop\.copy'"),
    ):
        streamed.backfill("copy", sink="delta", start="2026-01-01", replace=True)


def test_rows_of_a_batch_that_is_not_committed_are_not_taken_away(streamed: Shop) -> None:
    streamed.add_lines(order("f", "13:05:00"))
    streamed.stream("copy")
    (streamed.folder / "checkpoints" / "copy" / "commits" / "1").unlink()

    with pytest.raises(CheckpointError, match="has started a batch and not committed it"):
        streamed.backfill("copy", sink="delta", start="2026-01-01", replace=True)


def test_a_newer_row_of_a_batch_that_is_not_committed_is_not_replaced_by_an_older_one(shop: Shop) -> None:
    shop.spec = KEYED
    shop.stream("copy")
    shop.add_lines(order("a", "13:05:00", 9))
    shop.stream("copy")
    commits = shop.folder / "checkpoints" / "copy" / "commits"
    for name in ("1", ".1.crc"):
        (commits / name).unlink(missing_ok=True)

    with pytest.raises(CheckpointError, match="has started a batch and not committed it"):
        shop.backfill("copy")
    shop.stream("copy")
    shop.backfill("copy")

    assert [(row[0], row[1]) for row in shop.rows("copy")] == [
        ("a", 9),
        ("b", 4),
        ("c", 5),
        ("d", 6),
        ("e", 7),
    ]


def test_rows_are_not_replaced_by_key_under_a_query_that_writes_them(shop: Shop) -> None:
    shop.spec = KEYED
    shop.stream("copy")
    shop.delete("copy", "id = 'a'")

    with CheckpointLock(shop.folder / "checkpoints" / "copy", "shop.copy"):
        with pytest.raises(CheckpointError, match=r"is held by 'shop\.copy'"):
            shop.backfill("copy")
        assert count_written(shop.backfill("copy", into="side")) == (5, 0, 0)
    shop.backfill("copy")

    assert [row[0] for row in shop.rows("copy")] == ["a", "b", "c", "d", "e"]


def test_closed_windows_are_replaced_by_key_while_their_query_runs(streamed: Shop) -> None:
    streamed.update("sums", "since = '2026-01-01T12:10:00Z'", amount="0")

    with CheckpointLock(streamed.folder / "checkpoints" / "sums", "shop.sums"):
        streamed.backfill("sums")

    assert sums(streamed)[:3] == ALL


def test_of_two_backfills_at_once_one_writes(shop: Shop) -> None:
    loaded = shop.loaded().pipeline
    assert loaded is not None
    target = BackfillTarget(
        "copy", "delta:copy", loaded.queries["copy"].to[0].sink, OutputMode.APPEND, side=False
    )
    rows = shop.spark.sql("SELECT 'a' AS id, 1 AS amount, TIMESTAMP '2026-01-01 12:00:00Z' AS at")

    first = open_backfill_write(shop.spark, loaded, target, rows.schema, None)
    second = open_backfill_write(shop.spark, loaded, target, rows.schema, None)
    first(rows)
    with pytest.raises(MillstreamError, match="another backfill of query 'copy' has written"):
        second(rows)

    assert len(shop.rows("copy")) == 1


def test_the_stream_goes_on_after_a_backfill_and_nothing_is_doubled(streamed: Shop) -> None:
    streamed.delete("copy", "id = 'a'")
    streamed.add_lines(order("f", "13:05:00", 1))
    streamed.backfill("copy", "sums", sink="delta")

    streamed.stream("copy", "sums")

    assert [row[0] for row in streamed.rows("copy")] == ["a", "b", "c", "d", "e", "f"]
    assert figures(streamed.compare("sums")) == (0, 0, 0)


def test_a_table_with_keys_that_was_filled_before_the_first_batch_comes_out_right(shop: Shop) -> None:
    shop.backfill("sums")

    shop.stream("sums")

    assert figures(shop.compare("sums")) == (0, 0, 0)


def test_the_own_table_named_as_another_place_is_the_own_table(shop: Shop) -> None:
    with pytest.raises(CheckpointError, match="query 'copy' has not committed a batch yet"):
        shop.backfill("copy", sink="delta", into="copy")


def test_beside_a_running_query_each_row_is_there_once(streamed: Shop) -> None:
    streamed.delete("copy", "id = 'a'")
    pipeline = streamed.loaded().pipeline
    assert pipeline is not None
    watching: queue.Queue[Supervisor] = queue.Queue()
    events = EventBus()
    options = RunOptions(select=("copy",))
    running = threading.Thread(
        target=run_pipeline,
        args=(streamed.spark, pipeline, options, events, {}),
        kwargs={"on_supervisor": watching.put},
    )
    running.start()
    supervisor = watching.get(timeout=60)

    for number in range(2):
        streamed.add_lines(order(f"x{number}", f"13:0{number}:00"))
        streamed.backfill("copy", sink="delta")
    supervisor.end()
    running.join(60)
    events.close()
    streamed.stream("copy")

    assert [row[0] for row in streamed.rows("copy")] == ["a", "b", "c", "d", "e", "x0", "x1"]


def test_a_source_that_keeps_nothing_is_refused(shop: Shop) -> None:
    shop.spec = "name: shop\nsources: {ticks: {rate: {}}}\nqueries: {ticks: {to: {delta: ticks}}}\n"

    with pytest.raises(InvalidInput, match="does not store its rows, so they cannot be read again"):
        shop.backfill()
