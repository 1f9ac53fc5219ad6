"""A table held against the batch answer of the query that writes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import InvalidInput
from spark.backfill.conftest import SPEC, figures, order

if TYPE_CHECKING:
    from millstream.backfill.report import BackfillReport
    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")


@pytest.fixture(scope="module")
def after_run(shop_after_run: Shop, small_batches: None) -> BackfillReport:  # noqa: ARG001 - it compares with them
    """All that the stream wrote, compared."""
    shop_after_run.restore()
    shop_after_run.spec = SPEC
    return shop_after_run.backfill(compare=True)


def test_what_the_stream_wrote_is_the_batch_answer(after_run: BackfillReport) -> None:
    assert [(sink_outcome.query, figures(sink_outcome)) for sink_outcome in after_run.outcomes] == [
        ("sums", (0, 0, 0)), ("closed", (0, 0, 0)), ("copy", (0, 0, 0)), ("copy", (0, 0, 0)),
    ]  # fmt: skip
    assert after_run.is_equal


def test_windows_that_are_still_open_are_not_missing_in_append_mode(after_run: BackfillReport) -> None:
    (closed,) = (sink_outcome for sink_outcome in after_run.outcomes if sink_outcome.query == "closed")

    assert closed.expected == 3
    (note,) = (note for note in after_run.notes if note.startswith("closed: "))
    assert "rows from 2026-01-01 12:40:00+00:00 on are left out" in note


def test_rows_changed_taken_away_and_put_in_are_told_with_key_and_columns(streamed: Shop) -> None:
    streamed.update("sums", "since = '2026-01-01T12:10:00Z'", amount="99")
    streamed.delete("sums", "since = '2026-01-01T12:00:00Z'")
    streamed.insert("sums", since=datetime(2026, 1, 1, 9, tzinfo=UTC), n=1, amount=1)

    missing, surplus, different = streamed.compare("sums").differences

    assert (missing.kind, missing.key["since"]) == ("missing", "2026-01-01 12:00:00")
    assert (surplus.kind, surplus.key["since"]) == ("surplus", "2026-01-01 09:00:00")
    assert different.plain() == {
        "kind": "different",
        "key": {"since": "2026-01-01 12:10:00"},
        "times": 1,
        "columns": {"amount": {"held": "99", "wanted": "5"}},
    }


def test_a_row_that_is_there_twice_is_surplus_once(streamed: Shop) -> None:
    streamed.insert("copy", id="b", amount=4, at=datetime(2026, 1, 1, 12, 2, tzinfo=UTC))

    sink_outcome = streamed.compare("copy", sink="delta")

    assert (figures(sink_outcome), sink_outcome.differences[0].key["id"]) == ((0, 1, 0), "b")


def test_a_null_in_one_column_is_not_a_null_in_another(shop: Shop) -> None:
    shop.spec = shop.spec.replace("[{delta: copy}, {parquet: files}]", "{delta: copy}")
    shop.add_lines({"id": None, "amount": 1, "at": "2026-01-01T13:01:00Z"})
    shop.stream("copy")
    shop.update("copy", "id IS NULL", id="'1'", amount="NULL")

    assert figures(shop.compare("copy")) == (1, 1, 0)


def test_rows_outside_the_range_are_not_looked_at_and_a_window_inside_is_computed_from_all_of_its_rows(
    streamed: Shop,
) -> None:
    streamed.delete("sums", "since = '2026-01-01T12:20:00Z'")

    inside = streamed.compare("sums", start="2026-01-01 12:20", end="2026-01-01 12:30")
    # The range ends in the middle of the window that begins at 12:10, before its only row.
    outside = streamed.compare("sums", start="2026-01-01 12:00", end="2026-01-01 12:11:30")

    assert (figures(inside), figures(outside)) == ((1, 0, 0), (0, 0, 0))
    assert outside.expected == 2


def test_input_that_the_stream_has_not_read_is_not_wanted_yet(streamed: Shop) -> None:
    streamed.add_lines(order("f", "13:05:00"))

    assert figures(streamed.compare("copy", sink="delta")) == (0, 0, 0)


def test_a_query_that_never_ran_lacks_everything(shop: Shop) -> None:
    assert figures(shop.compare("sums")) == (4, 0, 0)


def test_two_columns_of_time_ask_for_the_one_that_counts(shop: Shop) -> None:
    shop.spec = shop.spec.replace("copy: {from: orders", "copy: {from: twice").replace(
        "queries:", "  twice: SELECT *, at AS seen FROM orders\nqueries:"
    )

    with pytest.raises(InvalidInput) as error:
        shop.compare("copy", start="2026-01-01")

    assert error.value.what == "query 'copy': columns at and seen are both event times"
    compared = shop.compare("copy", sink="delta", start="2026-01-01", column="seen")
    assert figures(compared) == (5, 0, 0)


def test_a_row_without_a_time_of_its_own_asks_for_a_column(shop: Shop) -> None:
    shop.spec = shop.spec.replace("copy: {from: orders", "copy: {from: plain").replace(
        "queries:", "  plain: SELECT id, amount FROM orders\nqueries:"
    )

    with pytest.raises(InvalidInput, match="no column is derived from event time alone"):
        shop.compare("copy", start="2026-01-01")


def test_a_column_of_the_clock_is_not_compared(shop: Shop) -> None:
    shop.spec = shop.spec.replace(
        "copy: {from: orders, to: [{delta: copy}, {parquet: files}]}",
        "copy: {from: stamped, to: {delta: copy}}",
    ).replace("queries:", "  stamped: SELECT *, current_timestamp() AS loaded FROM orders\nqueries:")
    shop.stream("copy")

    report = shop.backfill("copy", compare=True)

    assert report.is_equal
    assert report.notes == ["copy: loaded is not compared, because its values differ in each run"]
