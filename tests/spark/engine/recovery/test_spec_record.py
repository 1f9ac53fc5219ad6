"""Two specs are compared by the settings that a run of each would have, whatever the session that plans them has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.engine.recovery.restart_check import restrict_pinned
from millstream.engine.recovery.spec_record import describe_queries
from millstream.pipeline.spec_file import load_text
from millstream.plan.query_plan import QueryPlan, plan_query
from millstream.spark.recorded_settings import SPARK_DEFAULTS
from small_batches import changed_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline

SPEC = """
name: shop
sources:
  orders:
    json: in
    schema: {k: string, v: bigint, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
views:
  days: SELECT window.start AS day, k, sum(v) AS s FROM orders GROUP BY window(at, '1 day'), k
queries:
  days: {output_mode: update, to: {delta: {path: lake/days, merge_on: [day, k]}}}
"""
TOKYO = "spark.sql.session.timeZone: Asia/Tokyo"


def load(folder: Path, text: str) -> Pipeline:
    (folder / "in").mkdir(exist_ok=True)
    pipeline = load_text("pipeline.yml", text, folder, {}).pipeline
    assert pipeline is not None
    return pipeline


def compare(spark: SparkSession, deployed: Pipeline, changed: Pipeline) -> QueryPlan:
    """Plan both in a session with the settings of the changed spec, as `plan --against` does."""
    with changed_settings(spark, {name: str(value) for name, value in changed.spark.items()}):
        before = describe_queries(spark, deployed, ["days"])["days"]
        now = describe_queries(spark, changed, ["days"])["days"]
    return plan_query("days", "deployed.yml", before, restrict_pinned(changed, now))


@pytest.mark.parametrize(
    ("before", "now", "verdict", "kinds"),
    [
        ("name: shop", f"name: shop\nspark: {{{TOKYO}}}", "silently_wrong", ["setting_changed"]),
        (
            "name: shop",
            "name: shop\nspark: {spark.sql.shuffle.partitions: 999}",
            "repartition",
            ["shuffle_partitions_changed"],
        ),
        ("merge_on: [day, k]", "merge_on: [day]", "continues_with_note", ["sink_key_changed"]),
        ("name: shop", "name: shop", "continues", []),
    ],
)
def test_what_only_the_changed_spec_sets_is_compared_with_its_default(
    spark: SparkSession, tmp_path: Path, before: str, now: str, verdict: str, kinds: list[str]
) -> None:
    plan = compare(spark, load(tmp_path, SPEC), load(tmp_path, SPEC.replace(before, now)))

    assert (plan.verdict.value, [judgement.kind for judgement in plan.judgements]) == (verdict, kinds)


def test_what_only_the_deployed_spec_sets_is_compared_with_its_default(
    spark: SparkSession, tmp_path: Path
) -> None:
    deployed = load(tmp_path, SPEC.replace("name: shop", f"name: shop\nspark: {{{TOKYO}}}"))

    plan = compare(spark, deployed, load(tmp_path, SPEC))

    assert [judgement.what for judgement in plan.judgements] == [
        "spark.sql.session.timeZone is UTC; it was Asia/Tokyo"
    ]


def test_a_secret_that_spark_binds_into_the_plan_is_not_recorded_and_a_change_of_it_is_noticed(
    spark: SparkSession, tmp_path: Path
) -> None:
    filtered = SPEC.replace("FROM orders", "FROM orders WHERE sha2(concat(k, :hash_secret), 256) > 'a'")
    first, other = (
        load(tmp_path, f"params: {{hash_secret: {word}-c4nary}}\n{filtered}") for word in ("first", "other")
    )

    recorded = describe_queries(spark, first, ["days"])["days"]
    plan = compare(spark, first, other)

    assert "c4nary" not in recorded.to_json()
    assert "***" in str(recorded.plan)
    assert [judgement.kind for judgement in plan.judgements] == ["state_input_changed"]


def test_the_defaults_of_settings_are_those_of_spark(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in SPARK_DEFAULTS} == SPARK_DEFAULTS
