"""Sinks that do not give back each value as it was written: a backfill adds none of its rows a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import InvalidInput
from spark.backfill.conftest import SPEC, Shop, figures, order

if TYPE_CHECKING:
    from millstream.backfill.report import SinkOutcome

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

# Texts that CSV quotes or escapes, or gives back as NULL, and that are several lines of a file.
TEXTS = ["plain", "", None, "two\nlines", "two\r\nlines", "a\rb", 'a "quoted", b\\', " spaced ", "\n", "NULL"]


def with_sink(shop: Shop, sink: str, view: str = "SELECT * FROM orders") -> None:
    """The shop, whose query `copy` writes a view to one sink."""
    shop.spec = SPEC.replace("  sums: |", f"  copied: {view}\n  sums: |", 1).replace(
        "copy: {from: orders, to: [{delta: copy}, {parquet: files}]}",
        f"copy: {{from: copied, to: {{{sink}}}}}",
    )


def refill(shop: Shop, **options: Any) -> tuple[SinkOutcome, SinkOutcome]:
    """The sink of the query after a run, compared, and what a backfill then does."""
    shop.stream("copy")
    return shop.compare("copy", **options), shop.backfill("copy", **options).outcomes[0]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_times_are_compared_as_precisely_as_the_files_store_them(form: str, shop: Shop) -> None:
    with_sink(shop, f"{form}: files", "SELECT *, CAST(at AS TIMESTAMP_NTZ) AS plain FROM orders")
    shop.add_lines(order("x", "12:03:00.123456"), order("y", "12:03:00.999999"))

    compared, filled = refill(shop, start="2026-01-01 12:00", end="2026-01-01 12:03:01", column="at")

    assert (figures(compared), compared.expected) == ((0, 0, 0), 4)
    assert filled.added == 0


def test_the_options_of_the_sink_decide_what_its_files_store(shop: Shop) -> None:
    with_sink(
        shop, "csv: {path: files, options: {timestampFormat: yyyy-MM-dd, nullValue: none, header: true}}"
    )
    shop.add_lines(order("none", "12:03:00"))

    compared, filled = refill(shop)

    assert (figures(compared), filled.added) == ((0, 0, 0), 0)
    with pytest.raises(InvalidInput, match="stores column 'at' with less precision than this range needs"):
        shop.backfill("copy", start="2026-01-01 12:00")


@pytest.mark.parametrize(
    "sink",
    [
        "csv: files",
        "json: files",
        "parquet: {path: files, partition_by: id}",
        "delta: {path: files, partition_by: id}",
    ],
)
def test_a_text_is_compared_as_the_sink_gives_it_back(sink: str, shop: Shop) -> None:
    with_sink(shop, sink)
    shop.add_lines(*(order(text, "12:03:00") for text in TEXTS))  # type: ignore[arg-type]

    compared, filled = refill(shop)

    assert (figures(compared), compared.expected) == ((0, 0, 0), 5 + len(TEXTS))
    assert filled.added == 0


def test_lines_of_a_text_are_surplus_and_the_text_is_not_added_again(shop: Shop) -> None:
    with_sink(shop, "text: files", "SELECT id FROM orders")
    shop.add_lines(*(order(text, "12:03:00") for text in TEXTS))  # type: ignore[arg-type]

    compared, filled = refill(shop)

    assert (compared.missing, compared.surplus) == (0, 4)
    assert filled.added == 0


def test_a_row_that_the_files_lack_is_added_as_it_is(shop: Shop) -> None:
    """Both rows are the same to a reader of the files."""
    with_sink(shop, "csv: files")
    shop.stream("copy")
    shop.add_lines(order("", "12:03:00.123456"), order(None, "12:03:00.123"))  # type: ignore[arg-type]
    shop.stream("copy")
    for file in (shop.folder / "files").glob("part-*-000001-*"):
        file.unlink()

    report = shop.backfill("copy")

    assert report.outcomes[0].added == 2
    files = sorted((shop.folder / "files").glob("part-*"))
    lines = [line for file in files for line in file.read_text().splitlines() if "12:03:00" in line]
    assert sorted(lines) == ['"",1,2026-01-01T12:03:00.123Z', ",1,2026-01-01T12:03:00.123Z"]
    assert figures(shop.compare("copy")) == (0, 0, 0)


def test_a_sink_of_which_no_row_is_known_is_not_filled_a_second_time(shop: Shop) -> None:
    with_sink(shop, "delta: copy")
    shop.stream("copy")
    shop.update("copy", amount="amount + 1")

    with pytest.raises(
        InvalidInput, match=r"none of the 5 rows of delta .*copy is in the result, so all 5 rows"
    ):
        shop.backfill("copy")
    assert len(shop.rows("copy")) == 5
    shop.backfill("copy", start="2026-01-01", replace=True)

    assert figures(shop.compare("copy")) == (0, 0, 0)
