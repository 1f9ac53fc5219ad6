"""Tables that changes are applied to, held against what follows from all changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import InvalidInput
from small_batches import SMALL_BATCHES, changed_settings
from spark.backfill.conftest import Shop, figures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

SPEC = """
name: shop
defaults: {checkpoints: checkpoints}
sources:
  changes:
    json: {path: in, max_files_per_trigger: 1}
    schema: {id: string, amount: int, n: bigint, op: string}
    on_malformed: drop
queries:
  sums:
    from: changes
    to:
      delta:
        path: sums
        cdc: {keys: [id], sequence_by: n, apply_as_deletes: "op = 'd'", except_column_list: [op]}
  closed:
    from: changes
    to:
      delta:
        path: closed
        cdc:
          keys: [id]
          sequence_by: n
          apply_as_deletes: op = 'd'
          except_column_list: [op]
          stored_as_scd_type: 2
"""


def change(id: str, n: int, amount: int | None = None) -> dict[str, Any]:
    """A version of an order; without an amount it goes."""
    return {"id": id, "n": n, "amount": amount, "op": "d" if amount is None else "u"}


@pytest.fixture(scope="module")
def after_run(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Shop:
    """Four orders: a goes and comes back, b goes, c changes, and an old version of d comes later."""
    shop = Shop(tmp_path_factory.mktemp("changed"), spark)
    shop.spec = SPEC
    shop.add_lines(change("a", 1, 10), change("b", 2, 20), change("c", 3, 30), change("d", 9, 40))
    shop.add_lines(change("a", 4), change("b", 5), change("a", 6, 11), change("c", 7, 31), change("d", 8, 39))
    with changed_settings(spark, SMALL_BATCHES):
        shop.stream()
    shop.keep()
    return shop


@pytest.fixture
def changed(after_run: Shop) -> Shop:
    after_run.restore()
    return after_run


def test_what_the_stream_made_of_changes_is_what_follows_from_all(changed: Shop) -> None:
    report = changed.backfill(compare=True)

    assert [(outcome.query, outcome.expected, figures(outcome)) for outcome in report.outcomes] == [
        ("sums", 3, (0, 0, 0)), ("closed", 7, (0, 0, 0)),
    ]  # fmt: skip


def test_a_row_that_was_deleted_and_one_with_an_older_value_are_told(changed: Shop) -> None:
    changed.insert("sums", id="b", amount=20, n=2)
    changed.update("sums", "id = 'c'", amount="30")
    changed.delete("sums", "id = 'd'")

    sink_outcome = changed.compare("sums")

    assert sorted((difference.kind, difference.key["id"]) for difference in sink_outcome.differences) == [
        ("different", "c"), ("missing", "d"), ("surplus", "b"),
    ]  # fmt: skip


def test_an_interval_that_was_never_closed_is_told(changed: Shop) -> None:
    changed.update("closed", "id = 'c' AND __start_at = 3", __end_at="NULL")

    sink_outcome = changed.compare("closed")

    assert (figures(sink_outcome), sink_outcome.differences[0].key["id"]) == ((0, 0, 1), "c")


def test_rows_of_a_backfill_are_not_written_where_changes_are_applied(changed: Shop) -> None:
    with pytest.raises(InvalidInput, match="cannot be backfilled: it is built from changes"):
        changed.backfill("sums")
