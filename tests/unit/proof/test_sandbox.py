"""A copy of a pipeline touches nothing of the original's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.values.sandbox import Sandbox
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.model import OnMalformed
from millstream.pipeline.spec_file import load_text
from millstream.proof.kill_plan import RANDOM, STARTING, list_failpoints, plan_kills
from millstream.proof.sandbox import copy_to_sandbox

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

SPEC = """
name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: orders, starting_offsets: latest}
    schema: {id: bigint, user_id: string}
  ticks:
    rate: {}
views:
  copies: SELECT * FROM orders
queries:
  orders:
    from: copies
    trigger: 10 seconds
    checkpoint: kept/here
    to:
      - delta: {path: lake/orders}
      - postgres: {url: "postgresql://localhost/postgres", table: sales.orders, create: false}
      - kafka: {bootstrap_servers: "localhost:9092", topic: out}
      - console: {}
  ticks:
    to: {delta: {path: lake/ticks}}
alerts: [no progress for 3 triggers]
alerts_to: https://hooks.example.com/shop
"""
PLACE = Sandbox(Path("/proof/7"), "proof_7_abc")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    loaded = load_text("pipeline.yml", SPEC, tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def test_all_that_is_written_lies_in_a_place_of_its_own(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    targets = [entry.sink.target() for entry in copy.queries["orders"].to]
    assert targets[0].startswith("/proof/7/lake/orders-")
    assert targets[1:] == ["proof_7_abc.sales_orders", "proof_7_abc.out"]


def test_checkpoints_and_dead_letters_move_too(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    assert (copy.checkpoint("orders"), copy.letters.target()) == (
        "/proof/7/checkpoints/orders",
        "/proof/7/checkpoints/_dead_letters",
    )


def test_the_copy_alerts_nobody(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    assert (len(pipeline.alerts), pipeline.alerts_to is None) == (1, False)
    assert (copy.alerts, copy.alerts_to) == ((), None)


def test_the_source_reads_a_topic_of_its_own_from_the_beginning(pipeline: Pipeline) -> None:
    source = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline.sources["orders"].source

    assert [need.name for need in source.needs()] == ["proof_7_abc.orders"]


def test_the_original_stays_as_it_is(pipeline: Pipeline) -> None:
    before = pipeline.model_dump_json()

    copy_to_sandbox(pipeline, ["orders"], PLACE)

    assert pipeline.model_dump_json() == before


def test_a_sink_that_keeps_nothing_is_left_out_with_a_note(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE)

    assert copy.notes == ("orders: console stores no rows and is left out",)


def test_a_source_that_cannot_be_fed_is_named(pipeline: Pipeline) -> None:
    with pytest.raises(InvalidInput, match="source 'ticks'"):
        copy_to_sandbox(pipeline, ["ticks"], PLACE)


def test_only_what_the_queries_need_is_copied(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    assert (list(copy.sources), list(copy.views)) == (["orders"], ["copies"])


def test_each_point_of_each_sink_is_aimed_at(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    chosen = {aim.point for aim in plan_kills(copy, 40, seed=1)}

    assert chosen == {*list_failpoints(copy), RANDOM, STARTING}


def test_a_run_is_killed_after_its_dead_letters_if_it_may_write_some(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline
    orders = copy.sources["orders"].model_copy(update={"on_malformed": OnMalformed.DEAD_LETTER})
    with_letters = copy.model_copy(update={"sources": {"orders": orders}})

    assert "letters.kept" not in list_failpoints(copy)
    assert list_failpoints(with_letters)[-2:] == ("letters.kept", "batch.delivered")


def test_the_same_seed_aims_at_the_same_points(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    assert list(plan_kills(copy, 30, seed=5)) == list(plan_kills(copy, 30, seed=5))


def test_one_point_may_be_asked_for(pipeline: Pipeline) -> None:
    copy = copy_to_sandbox(pipeline, ["orders"], PLACE).pipeline

    assert {aim.point for aim in plan_kills(copy, 5, seed=1, only="delta.before")} == {"delta.before"}


def test_spark_is_set_for_short_lives_and_by_the_pipeline_where_it_says_so(pipeline: Pipeline) -> None:
    own = {"spark.sql.shuffle.partitions": 8, "spark.driver.extraJavaOptions": "-Down=1"}
    copy = copy_to_sandbox(pipeline.model_copy(update={"spark": own}), ["orders"], PLACE).pipeline

    assert copy.spark["spark.sql.shuffle.partitions"] == 8
    assert copy.spark["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Down=1"
    assert copy.spark["spark.driver.memory"] == "1g"


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        ("memory: seen", "stores no rows"),
        ('foreach: "alerts:send"', "writes where its function decides"),
        ('foreach_batch: "alerts:store"', "writes where its function decides"),
    ],
)
def test_a_sink_that_cannot_be_moved_is_left_out_with_a_note(sink: str, why: str, tmp_path: Path) -> None:
    loaded = load_text("pipeline.yml", SPEC.replace("console: {}", sink), tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    copy = copy_to_sandbox(loaded.pipeline, ["orders"], PLACE)

    assert len(copy.pipeline.queries["orders"].to) == 3
    (note,) = copy.notes
    assert why in note
