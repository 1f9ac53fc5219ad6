"""Backfills over topics: read from the oldest record to where the query stands, and never written back into one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from millstream.backfill.fresh_start import PastChoice
from millstream.diagnostics.failure import InvalidInput
from spark.backfill.conftest import Shop, figures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from conftest import Broker

pytestmark = pytest.mark.usefixtures("small_batches")

SPEC = """
name: shop
defaults: {{checkpoints: checkpoints}}
sources:
  orders:
    kafka: {{bootstrap_servers: "{address}", subscribe: {topic}}}
    schema: {{id: string, amount: int, at: timestamp}}
    watermark: {{event_time: at, delay_threshold: 10 minutes}}
    on_malformed: drop
queries:
  copy: {{from: orders, to: [{{delta: copy}}, {{kafka: {{bootstrap_servers: "{address}", topic: {out}}}}}]}}
"""


class Topic(Shop):
    """A shop whose orders come in a topic of two partitions."""

    broker: Broker
    topic: str

    def send(self, partition: int, *minutes: int) -> None:
        """Orders, named by their minute after noon."""
        texts = [
            json.dumps({"id": f"o{minute:02}", "amount": 1, "at": f"2026-01-01T12:{minute:02}:00Z"})
            for minute in minutes
        ]
        self.broker.send(self.topic, partition, *texts)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, broker: Broker) -> Iterator[Topic]:
    topic = Topic(tmp_path, spark)
    topic.broker, topic.topic = broker, broker.topic()
    topic.spec = SPEC.format(address=broker.address, topic=topic.topic, out=broker.topic())
    topic.send(0, 1, 2, 30)
    topic.send(1, 3, 31)
    yield topic
    for stream in spark.streams.active:
        stream.stop()


def test_records_that_the_query_has_not_read_are_not_wanted_yet(shop: Topic) -> None:
    shop.stream("copy")
    shop.send(0, 40)

    assert [figures(sink_outcome) for sink_outcome in shop.backfill("copy", compare=True).outcomes] == [
        (0, 0, 0)
    ] * 2


def test_a_lost_row_comes_back_from_the_topic(shop: Topic) -> None:
    shop.stream("copy")
    shop.delete("copy", "id = 'o03'")

    shop.backfill("copy", sink="delta", start="2026-01-01 12:00", end="2026-01-01 12:10")

    assert [row[0] for row in shop.rows("copy")] == ["o01", "o02", "o03", "o30", "o31"]


def test_a_topic_takes_no_rows_of_a_backfill(shop: Topic) -> None:
    with pytest.raises(InvalidInput, match="its readers would get old records after newer ones"):
        shop.backfill("copy", sink="kafka")


def test_a_side_topic_is_filled_once(shop: Topic) -> None:
    side = shop.broker.topic()

    first = shop.backfill("copy", sink="kafka", into=side)
    report = shop.backfill("copy", sink="kafka", into=side)

    assert (first.outcomes[0].added, report.outcomes[0].added, report.outcomes[0].stored) == (5, 0, 5)


def test_times_are_compared_as_precisely_as_json_records_have_them(shop: Topic) -> None:
    side = shop.broker.topic()
    shop.broker.send(shop.topic, 0, '{"id": "x", "amount": 1, "at": "2026-01-01T12:05:00.123456Z"}')

    first = shop.backfill("copy", sink="kafka", into=side)
    report = shop.backfill("copy", sink="kafka", into=side)

    assert (first.outcomes[0].added, report.outcomes[0].added, report.outcomes[0].stored) == (6, 0, 6)


def test_a_range_whose_records_the_broker_has_deleted_is_refused_with_the_moment_that_is_whole(
    shop: Topic,
) -> None:
    requests = shop.broker.admin.delete_records([TopicPartition(shop.topic, 0, 1)])
    for deleted in requests.values():
        deleted.result(60)

    with pytest.raises(InvalidInput) as error:
        shop.backfill("copy", compare=True, sink="delta", start="2026-01-01 12:00")

    # What is left begins with o02 in one partition and o03 in the other; ten minutes later nothing can be missing.
    assert (
        "has no offsets 0 to 0 any more: 1 record; it is complete from 2026-01-01 12:13:00+00:00 on"
        in error.value.what
    )
    assert shop.compare("copy", sink="delta", start="2026-01-01 12:13").expected == 2
    assert shop.compare("copy", sink="delta", accept_gap=True).expected == 4


@pytest.mark.parametrize(("past", "skipped"), [(PastChoice.CONTINUE, []), (PastChoice.NOW, ["o40"])])
def test_a_new_checkpoint_reads_on_where_the_former_one_was_or_at_the_end(
    shop: Topic, past: PastChoice, skipped: list[str]
) -> None:
    shop.stream("copy")
    shop.send(0, 40)

    shop.renew("copy", past)
    shop.send(1, 41)
    shop.stream("copy")

    ids = ["o01", "o02", "o03", "o30", "o31", "o40", "o41"]
    assert [row[0] for row in shop.rows("copy")] == [name for name in ids if name not in skipped]


def test_windows_of_a_topic_are_recomputed_and_open_ones_are_counted_from_the_first_record(
    shop: Topic,
) -> None:
    head, _, _ = shop.spec.partition("queries:")
    view = "SELECT window.start AS since, count(*) AS n FROM orders GROUP BY window(at, '10 minutes')"
    shop.spec = f'{head}views: {{sums: "{view}"}}\nqueries:\n  sums: {{to: {{delta: sums}}}}\n'
    shop.stream("sums")
    shop.spec = shop.spec.replace("10 minutes')", "20 minutes')")

    shop.renew("sums", PastChoice.BACKFILL)
    assert [(row[0].minute, row[1]) for row in shop.rows("sums")] == [(0, 3)]
    shop.send(0, 5, 55)
    shop.send(1, 55)
    shop.stream("sums")

    assert [(row[0].minute, row[1]) for row in shop.rows("sums")] == [(0, 3), (20, 2)]
