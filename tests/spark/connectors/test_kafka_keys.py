"""Keys of Kafka records: rows with different key columns have different keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.writer import KafkaWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")
IDENTITY = SinkIdentity("shop", "totals", "3f0c", "kafka:totals", OutputMode.UPDATE)


@pytest.fixture
def berlin(spark: SparkSession) -> SparkSession:
    """A session in a zone with daylight saving time."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    return session


def keys(session: SparkSession, key: list[str], rows: str) -> list[str]:
    sink = KafkaSink.model_validate({"bootstrap_servers": "localhost:9092", "topic": "t", "key": key})
    frame = session.sql(f"SELECT * FROM VALUES {rows} AS t({', '.join(key)})")
    records = KafkaWriter(sink, IDENTITY).records(frame, 0).selectExpr("CAST(key AS STRING) AS key")
    return [row.key for row in records.collect()]


def test_two_instants_with_one_local_time_have_two_keys(berlin: SparkSession) -> None:
    rows = "(TIMESTAMP'2026-10-25 00:30:00Z'), (TIMESTAMP'2026-10-25 01:30:00Z'), (TIMESTAMP'2026-06-01 00:00:00Z')"

    assert keys(berlin, ["at"], f"{rows}, (NULL)") == [
        "2026-10-25 02:30:00",
        "2026-10-25 02:30:00+01",
        "2026-06-01 02:00:00",
        None,
    ]


def test_times_in_a_key_of_several_columns_keep_their_microseconds(berlin: SparkSession) -> None:
    rows = ", ".join(
        f"('ada', TIMESTAMP'2026-10-25 00:30:00{fraction}Z', TIMESTAMP_NTZ'2026-10-25 02:30:00')"
        for fraction in ("", ".5", ".500001", ".500002")
    )

    texts = keys(berlin, ["user", "at", "plain"], f"{rows}, ('ada', NULL, NULL)")

    assert texts == [
        '{"user":"ada","at":"2026-10-25T02:30:00.000+02:00","plain":"2026-10-25T02:30:00.000"}',
        '{"user":"ada","at":"2026-10-25T02:30:00.500+02:00","plain":"2026-10-25T02:30:00.000"}',
        '{"user":"ada","at":"2026-10-25T02:30:00.500001+02:00","plain":"2026-10-25T02:30:00.000000"}',
        '{"user":"ada","at":"2026-10-25T02:30:00.500002+02:00","plain":"2026-10-25T02:30:00.000000"}',
        '{"user":"ada","at":null,"plain":null}',
    ]
