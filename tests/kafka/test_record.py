"""Tests made of records of a real broker, as `millstream test --record` makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.pipeline.load import load
from millstream.testing import record
from millstream.testing.load import load_text
from millstream.testing.play import play
from millstream.testing.session import case_folder
from millstream.testing.update import updated

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
    pipeline = load(spec, {}, ()).pipeline
    assert pipeline is not None

    source = record.named(pipeline, topic)
    entry = pipeline.sources[source]
    items = [record.fed(entry, row) for row in record.newest(spark, entry, source, 3)]
    text = record.written("real", record.played_by(pipeline, source, None), source, items)
    (case,) = load_text("real.yml", text, tmp_path / "tests" / "real.yml", lambda _: {}, filling=True).cases
    with case_folder() as folder:
        outcome = play(spark, case, folder, on=True)
    filled = updated("real.yml", text, [(case, outcome.played)]).text

    assert [item.get("id") for item in items] == ["a", None, "b"]
    assert items[1]["record"]["value"] == "{broken"
    assert "{id: a, n: 2}" in filled.partition("expect:")[2]
    (again,) = load_text("real.yml", filled, tmp_path / "tests" / "real.yml", lambda _: {}).cases
    with case_folder() as folder:
        assert play(spark, again, folder).passed
