"""A shop whose windows became longer after it ran: `plan --apply` gives its query another checkpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commands import Done, call, shared_spark
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.checkpoint.replacement import finish_replacements
from spark.backfill.conftest import fill_input, order

if TYPE_CHECKING:
    from spark.backfill.conftest import Shop

SPEC = """
name: shop
spark: {spark.sql.shuffle.partitions: 1, spark.driver.memory: 1g, spark.master: "local[2]"}
defaults: {checkpoints: checkpoints}
sources:
  orders:
    json: in
    schema: {id: string, amount: int, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
views:
  sums: |
    SELECT window.start AS since, count(*) AS n, sum(amount) AS amount
    FROM orders GROUP BY window(at, '10 minutes')
queries:
  sums: {output_mode: update, to: {delta: {path: sums, merge_on: [since]}}}
"""
APPLY = ("plan", "--apply", "--yes", "--past", "backfill")
HOURS = [("12:00", 4, 18), ("13:00", 1, 7)]


def run_and_change(shop: Shop) -> Shop:
    """Run the shop, then make its windows longer in the spec."""
    fill_input(shop)
    shop.spec = SPEC
    shop.stream()
    shop.spec = SPEC.replace("'10 minutes')", "'1 hour')")
    (shop.folder / "pipeline.yml").write_text(shop.spec)
    return shop


def here(shop: Shop, *words: str) -> Done:
    """The same command in the session of the tests."""
    with shared_spark(shop.spark):
        return call(shop.folder, *words, env=os.environ)


def windows(shop: Shop) -> list[tuple[str, int, int]]:
    """The rows of the sink."""
    return [(since.strftime("%H:%M"), n, amount) for since, n, amount in shop.rows("sums")]


def finish(shop: Shop) -> None:
    """Apply again, then run with one more order, and hold the rows against the right ones."""
    checkpoints = shop.folder / "checkpoints"
    finish_replacements(checkpoints)
    assert Checkpoint(checkpoints / "sums").query_id() is not None
    assert find_damage(checkpoints / "sums") == []
    refused = here(shop, "run", "--until-caught-up", "--no-page")
    assert refused.returncode in (0, 3), refused.stderr
    result = here(shop, *APPLY)
    assert result.returncode == 0, result.stdout + result.stderr
    shop.add_lines(order("f", "13:05:00", 1))
    shop.stream("sums")
    assert windows(shop) == [*HOURS[:1], ("13:00", 2, 8)]
