"""Tests made of records of a real broker, as `millstream test --record` makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.pipeline.spec_file import load_spec
from millstream.testing.authoring import record
from millstream.testing.authoring.update_expectations import update_expectations
from millstream.testing.files.loader import load_text
from millstream.testing.harness.session import create_case_folder
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from conftest import Broker

SPEC = """
name: shop
sources:
  clicks:
    kafka: {bootstrap_servers: "%s", subscribe: %s}
    schema: {id: string, n: int}
    on_malformed: dead_letter
queries: {clicks: {to: {memory: clicks}}}
"""


def test_the_newest_records_of_a_topic_become_a_test_that_passes_once_it_is_filled(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic(partitions=1)
    broker.send(topic, 0, '{"id": "old", "n": 1}', '{"id": "a", "n": 2}', "{broken", '{"id": "b"}')
    spec = tmp_path / "pipeline.yml"
    spec.write_text(SPEC % (broker.address, topic))
    pipeline = load_spec(spec, {}, ()).pipeline
    assert pipeline is not None

    source = record.find_source(pipeline, topic)
    entry = pipeline.sources[source]
    rows = record.read_newest_rows(spark, entry, source, 3)
    items = [record.to_feed_item(entry, row, "UTC") for row in rows]
    text = record.format_test("real", record.choose_query(pipeline, source, None), source, items)
    (case,) = load_text("real.yml", text, tmp_path / "tests" / "real.yml", lambda _: {}, filling=True).cases
    with create_case_folder() as folder:
        outcome = run_case(spark, case, folder, on=True)
    filled = update_expectations("real.yml", text, [(case, outcome.results)]).text

    assert [item.get("id") for item in items] == ["a", None, "b"]
    assert items[1]["record"]["value"] == "{broken"
    assert "{id: a, n: 2}" in filled.partition("expect:")[2]
    (second,) = load_text("real.yml", filled, tmp_path / "tests" / "real.yml", lambda _: {}).cases
    with create_case_folder() as folder:
        assert run_case(spark, second, folder).has_passed
