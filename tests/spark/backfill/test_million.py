"""Among many events, a million in a whole sweep, exactly the rows that were tampered with are told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg
import pytest

import sweep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints
    from spark.backfill.conftest import Shop

    Tamper = Callable[[], None]

# Generated code, as a million rows take half of the CPU with it.
pytestmark = pytest.mark.usefixtures("small_batches", "compiled")

ROWS = sweep.size(5_000, 1_000_000, "MILLSTREAM_COMPARED")
GONE, CHANGED, ADDED = (17, ROWS // 2, ROWS - 1), (0, ROWS // 8), (ROWS,)
SPEC = """
name: shop
sources:
  orders: {{parquet: in, schema: {{id: bigint, amount: int, at: timestamp}}}}
queries:
  orders: {{to: {sink}}}
"""


@pytest.fixture
def filled(shop: Shop, tmp_path: Path) -> Callable[[str], None]:
    """The events in files; a call has a backfill write them into a sink."""
    shop.spark.range(ROWS).selectExpr(
        "id", "CAST(id % 1000 AS INT) AS amount", "timestamp_seconds(1767225600 + id) AS at"
    ).write.mode("overwrite").parquet(str(tmp_path / "in"))

    def fill(sink: str) -> None:
        shop.spec = SPEC.format(sink=sink)
        shop.backfill()

    return fill


@pytest.fixture
def in_delta(filled: Callable[[str], None], shop: Shop) -> Tamper:
    """The events in a Delta table. In a call three rows go, two change and one comes."""
    filled("{delta: {path: million, merge_on: [id]}}")

    def tamper() -> None:
        shop.delete("million", f"id IN {GONE}")
        shop.update("million", f"id IN {CHANGED}", amount="-1")
        shop.insert("million", id=ADDED[0], amount=1, at=datetime(2026, 1, 1, tzinfo=UTC))

    return tamper


@pytest.fixture
def in_postgres(filled: Callable[[str], None], stack: Endpoints) -> Tamper:
    """The events in a Postgres table. A call does the same to it."""
    filled(f'{{postgres: {{url: "{stack.postgres}", table: million, merge_on: [id]}}}}')

    def tamper() -> None:
        with psycopg.connect(stack.postgres, options="-c timezone=UTC") as connection:
            connection.execute(f"DELETE FROM million WHERE id IN {GONE}")
            connection.execute(f"UPDATE million SET amount = -1 WHERE id IN {CHANGED}")
            connection.execute(f"INSERT INTO million VALUES ({ADDED[0]}, 1, '2026-01-01 00:00:00')")

    return tamper


# Most of it is filling the table; on a loaded machine two minutes were seen.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("table", ["in_delta", "in_postgres"])
def test_exactly_the_rows_that_were_tampered_with_are_told(
    shop: Shop, table: str, request: pytest.FixtureRequest
) -> None:
    tamper: Tamper = request.getfixturevalue(table)
    tamper()

    sink_outcome = shop.compare("orders")

    assert (sink_outcome.expected, sink_outcome.stored) == (ROWS, ROWS - len(GONE) + len(ADDED))
    assert [(difference.kind, difference.key["id"]) for difference in sink_outcome.differences] == [
        *(("missing", str(key)) for key in sorted(map(str, GONE))),
        *(("surplus", str(key)) for key in ADDED),
        *(("different", str(key)) for key in CHANGED),
    ]
    assert [difference.columns for difference in sink_outcome.differences[-2:]] == [
        {"amount": ("-1", str(key % 1000))} for key in CHANGED
    ]
