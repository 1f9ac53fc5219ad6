"""A table held against the batch answer of the query that writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import InvalidInput
from spark.backfill.conftest import figures, order

if TYPE_CHECKING:
    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("interpreted")


def test_what_the_stream_wrote_is_the_batch_answer(streamed: Shop) -> None:
    report = streamed.backfill(compare=True)

    assert [(sink_outcome.query, figures(sink_outcome)) for sink_outcome in report.outcomes] == [
        ("sums", (0, 0, 0)), ("closed", (0, 0, 0)), ("copy", (0, 0, 0)), ("copy", (0, 0, 0)),
    ]  # fmt: skip
    assert report.is_equal


def test_a_changed_value_is_told_with_its_key_and_column(streamed: Shop) -> None:
    streamed.update("sums", "since = '2026-01-01T12:10:00Z'", amount="99")

    sink_outcome = streamed.compare("sums")

    assert [difference.plain() for difference in sink_outcome.differences] == [
        {
            "kind": "different",
            "key": {"since": "2026-01-01 12:10:00"},
            "times": 1,
            "columns": {"amount": {"held": "99", "wanted": "5"}},
        }
    ]


def test_rows_taken_away_and_put_in_are_told(streamed: Shop) -> None:
    streamed.delete("sums", "since = '2026-01-01T12:00:00Z'")
    streamed.sql("INSERT INTO {sums} VALUES (TIMESTAMP '2026-01-01 09:00:00Z', 1, 1)")

    sink_outcome = streamed.compare("sums")

    assert [(difference.kind, difference.key["since"]) for difference in sink_outcome.differences] == [
        ("missing", "2026-01-01 12:00:00"), ("surplus", "2026-01-01 09:00:00"),
    ]  # fmt: skip


def test_a_row_that_is_there_twice_is_surplus_once(streamed: Shop) -> None:
    streamed.sql("INSERT INTO {copy} SELECT * FROM {copy} WHERE id = 'b'")

    sink_outcome = streamed.compare("copy")

    assert (figures(sink_outcome), sink_outcome.differences[0].key["id"]) == ((0, 1, 0), "b")


def test_a_null_in_one_column_is_not_a_null_in_another(shop: Shop) -> None:
    shop.add_lines({"id": None, "amount": 1, "at": "2026-01-01T13:01:00Z"})
    shop.stream("copy")
    shop.update("copy", "id IS NULL", id="'1'", amount="NULL")

    assert figures(shop.compare("copy")) == (1, 1, 0)


def test_rows_outside_the_range_are_not_looked_at(streamed: Shop) -> None:
    streamed.delete("sums", "since = '2026-01-01T12:20:00Z'")

    inside = streamed.compare("sums", start="2026-01-01 12:20", end="2026-01-01 12:30")
    outside = streamed.compare("sums", start="2026-01-01 12:00", end="2026-01-01 12:20")

    assert (figures(inside), figures(outside)) == ((1, 0, 0), (0, 0, 0))


def test_a_window_in_the_range_is_computed_from_all_of_its_rows(streamed: Shop) -> None:
    # The range ends in the middle of the window that begins at 12:00.
    sink_outcome = streamed.compare("sums", start="2026-01-01 12:00", end="2026-01-01 12:01:30")

    assert (sink_outcome.expected, figures(sink_outcome)) == (1, (0, 0, 0))


def test_windows_that_are_still_open_are_not_missing_in_append_mode(streamed: Shop) -> None:
    report = streamed.backfill("closed", compare=True)

    assert (report.outcomes[0].expected, report.is_equal) == (3, True)
    assert "rows from 2026-01-01 12:40:00+00:00 on are left out" in report.notes[0]


def test_input_that_the_stream_has_not_read_is_not_wanted_yet(streamed: Shop) -> None:
    streamed.add_lines(order("f", "13:05:00"))

    assert figures(streamed.compare("copy")) == (0, 0, 0)


def test_a_query_that_never_ran_lacks_everything(shop: Shop) -> None:
    assert figures(shop.compare("sums")) == (4, 0, 0)


def test_two_columns_of_time_ask_for_the_one_that_counts(shop: Shop) -> None:
    shop.spec = shop.spec.replace("copy: {from: orders", "copy: {from: twice").replace(
        "queries:", "  twice: SELECT *, at AS seen FROM orders\nqueries:"
    )

    with pytest.raises(InvalidInput) as error:
        shop.compare("copy", start="2026-01-01")

    assert error.value.what == "query 'copy': columns at and seen are both event times"
    assert figures(shop.compare("copy", start="2026-01-01", column="seen")) == (5, 0, 0)


def test_a_row_without_a_time_of_its_own_asks_for_a_column(shop: Shop) -> None:
    shop.spec = shop.spec.replace("copy: {from: orders", "copy: {from: plain").replace(
        "queries:", "  plain: SELECT id, amount FROM orders\nqueries:"
    )

    with pytest.raises(InvalidInput, match="no column is derived from event time alone"):
        shop.compare("copy", start="2026-01-01")


def test_a_column_of_the_clock_is_not_compared(shop: Shop) -> None:
    shop.spec = shop.spec.replace("copy: {from: orders", "copy: {from: stamped").replace(
        "queries:", "  stamped: SELECT *, current_timestamp() AS loaded FROM orders\nqueries:"
    )
    shop.stream("copy")

    report = shop.backfill("copy", compare=True, sink="delta")

    assert report.is_equal
    assert report.notes == ["copy: loaded is not compared, because its values differ in each run"]
