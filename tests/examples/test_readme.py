"""The README's first example gives the rows that the README shows."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from commands import call, shared_spark
from millstream.devstack.servers import topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, beginning: str) -> str:
    """The only block of the README in this language that begins so."""
    (text,) = re.findall(
        rf"^```{language}\n({re.escape(beginning)}.*?)^```", README, re.MULTILINE | re.DOTALL
    )
    return text


def test_its_records_give_the_rows_that_it_shows(
    spark: SparkSession, stack: Endpoints, tmp_path: Path
) -> None:
    topic = f"clicks-{uuid.uuid4().hex[:8]}"
    topics.create_topics(stack.kafka, {topic: {"partitions": "1"}})
    producer = Producer({"bootstrap.servers": stack.kafka})
    for record in block("text", '{"event_id": "a1"').splitlines():
        producer.produce(topic, record.encode())
    assert producer.flush(60) == 0
    del producer  # it would look for the broker after its end
    spec = block("yaml", "name: shop\n")
    spec = spec.replace("localhost:9092", stack.kafka).replace("subscribe: clicks,", f"subscribe: {topic},")
    (tmp_path / "pipeline.yml").write_text(spec)

    with shared_spark(spark):
        run = call(tmp_path, "run", "--until-caught-up", "--no-page", env=os.environ)
    shown = call(tmp_path, "show", "per_minute", env=os.environ)

    assert run.returncode == 0, run.both
    header, *rows = block("console", "$ millstream show per_minute\n").splitlines()[1:]
    lines = [line.rstrip() for line in shown.stdout.splitlines() if line.strip()]
    assert lines[0] == header, shown.both
    # The rows of one batch have no order.
    assert sorted(lines[1 : 1 + len(rows)]) == sorted(rows), shown.both
