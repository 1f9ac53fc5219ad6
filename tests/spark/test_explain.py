"""Queries explained from Spark's own plan, and the guarantees that follow from it.

`UPDATE_SNAPSHOTS=1 pytest tests/spark/test_explain.py` rewrites the texts in `explained/`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.check import check
from millstream.cli.explain.query_explanation import explain_query, format_explanation
from millstream.cli.project import open_project
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.analysis.query.delivery_guarantee import Promise

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"

SPEC = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders}
    watermark: {event_time: ts, delay_threshold: 10 minutes}
    schema: {id: string, amount: double, ts: timestamp}
views:
"""


@pytest.mark.parametrize(
    ("example", "query"), [("ecommerce", "funnel"), ("ecommerce", "purchases"), ("starter", "averages")]
)
def test_an_example_is_explained(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, example: str, query: str
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    loaded = open_project(None, (), None)
    plan = next(item for item in check(loaded, spark).queries if item.name == query)

    text = "\n".join(format_explanation(explain_query(loaded, query, plan))) + "\n"

    file = HERE / "explained" / f"{example}_{query}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(text, encoding="utf-8")
    assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()


def promised(spark: SparkSession, folder: Path, view: str, to: str) -> Promise:
    """The first promise of a query over that view."""
    text = f"{SPEC}  q: {view}\nqueries:\n  q: {{output_mode: update, to: [{to}]}}\n"
    loaded = load_text("pipeline.yml", text, folder, {})
    assert loaded.pipeline is not None, loaded.findings
    from_plan = check(loaded, spark).queries
    assert from_plan
    return explain_query(loaded, "q", from_plan[0]).promises[0]


DELTA = "{delta: {path: lake/q, merge_on: [id]}}"


def test_a_choice_of_rows_by_chance_below_an_aggregation_makes_an_atomic_sink_at_least_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    promise = promised(
        spark, tmp_path, "SELECT id, count(*) AS n FROM orders WHERE rand() < 0.5 GROUP BY id", DELTA
    )

    assert promise.guarantee == "at-least-once"
    assert promise.weakest
    assert promise.weakest.text.startswith("rand() (pipeline.yml:8) gives another value")


def test_a_name_drawn_by_chance_leaves_an_atomic_sink_exactly_once_and_not_reproducible(
    spark: SparkSession, tmp_path: Path
) -> None:
    promise = promised(spark, tmp_path, "SELECT id, uuid() AS made FROM orders", DELTA)

    assert promise.guarantee == "exactly-once"
    assert promise.weakest
    assert promise.weakest.text.endswith("'made' keeps the value of the first attempt")


def test_the_time_of_the_batch_weakens_nothing(spark: SparkSession, tmp_path: Path) -> None:
    promise = promised(spark, tmp_path, "SELECT id, current_timestamp() AS at FROM orders", DELTA)

    assert (promise.guarantee, promise.weakest) == ("exactly-once", None)


def test_a_function_of_the_users_is_trusted_and_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_scores.py").write_text(
        "from pyspark.sql.functions import udf\n\n"
        "score = udf(lambda a: a * 2, 'double')\n\n\n"
        "def q(orders):\n"
        "    return orders.withColumn('score', score('amount'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    promise = promised(spark, tmp_path, "{python: 'own_scores:q'}", DELTA)

    assert promise.guarantee == "exactly-once"
    assert [reason.text for reason in promise.conditions] == [
        "<lambda>() is assumed to return the same value for the same row"
    ]
