"""A batch that fails names the line of the spec or of the user's code, as `check` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC = """name: shop
sources:
  orders:
    json: in
    schema: {id: string, amount: int}
views:
  kept: "SELECT id, amount FROM orders WHERE amount >= 0"
  shares: |
    -- what each of a hundred costs
    SELECT id,
           100 / amount AS share
    FROM kept
  named: {python: "functions:named"}
queries:
  shares: {to: {parquet: out}}
  named: {to: {parquet: names}}
"""
FUNCTIONS = """from pyspark.sql.functions import udf

@udf("int")
def length(text):
    return len(text)

def named(orders):
    return orders.select(length("id").alias("length"))
"""


@pytest.mark.parametrize(
    ("query", "row", "reason"),
    [
        ("shares", '{"id": "a", "amount": 0}', "(view 'shares', {spec}:11)"),
        ("named", '{"id": null, "amount": 1}', "(functions.py:5)"),
    ],
)
def test_the_place_is_part_of_the_reason(
    spark: SparkSession, tmp_path: Path, query: str, row: str, reason: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(f"{row}\n")
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "pipeline.yml").write_text(SPEC)
    loaded = load_spec(tmp_path / "pipeline.yml", {})
    assert loaded.pipeline is not None
    failed: list[str] = []
    events = EventBus()
    events.listen(
        lambda event: failed.append(event.data["reason"]) if event.event == "query_failed" else None
    )

    def locate(view: str, start: int, stop: int) -> str:
        span = loaded.places.sql(view, start, stop)
        return f"{span.file}:{span.line}"

    run_pipeline(
        spark,
        loaded.pipeline,
        RunOptions(select=(query,), until_caught_up=True),
        events,
        {},
        on_supervisor=lambda supervisor: setattr(supervisor, "locate_sql", locate),
    )
    events.close()

    assert failed[0].endswith(reason.format(spec=loaded.places.file))
