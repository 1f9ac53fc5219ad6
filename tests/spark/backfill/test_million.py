"""Among a million events exactly the rows that were tampered with are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark.backfill.conftest import Shop

ROWS = 1_000_000
GONE, CHANGED, ADDED = (17, 500_000, 999_999), (0, 123_456), (1_000_000,)
SPEC = """
name: shop
sources:
  orders: {parquet: in, schema: {id: bigint, amount: int, at: timestamp}}
queries:
  orders: {to: {delta: {path: million, merge_on: [id]}}}
"""


def tampering(table: str) -> list[str]:
    """Statements that delete three rows, change two and add one."""
    return [
        f"DELETE FROM {table} WHERE id IN {GONE}",
        f"UPDATE {table} SET amount = -1 WHERE id IN {CHANGED}",
        f"INSERT INTO {table} VALUES ({ADDED[0]}, 1, TIMESTAMP '2026-01-01 00:00:00')",
    ]


@pytest.fixture
def tamper(shop: Shop, tmp_path: Path) -> Callable[[str], None]:
    """A million events in files, written by a backfill; a call does one thing to the table."""
    shop.spark.range(ROWS).selectExpr(
        "id", "CAST(id % 1000 AS INT) AS amount", "timestamp_seconds(1767225600 + id) AS at"
    ).write.mode("overwrite").parquet(str(tmp_path / "in"))
    shop.spec = SPEC
    shop.backfill()
    return lambda text: shop.spark.sql(text.replace("million", f"delta.`{tmp_path / 'million'}`"))


# Most of it is filling the table; on a loaded machine two minutes were seen.
@pytest.mark.timeout(300)
def test_exactly_the_rows_that_were_tampered_with_are_told(shop: Shop, tamper: Callable[[str], None]) -> None:
    for text in tampering("million"):
        tamper(text)

    found = shop.compare("orders")

    assert (found.wanted, found.held) == (ROWS, ROWS - len(GONE) + len(ADDED))
    assert [(one.kind, one.key["id"]) for one in found.differences] == [
        *(("missing", str(key)) for key in sorted(map(str, GONE))),
        *(("surplus", str(key)) for key in ADDED),
        *(("different", str(key)) for key in CHANGED),
    ]
    assert [one.columns for one in found.differences[-2:]] == [
        {"amount": ("-1", str(key % 1000))} for key in CHANGED
    ]
