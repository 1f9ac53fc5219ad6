"""Parts of a script in the words of a spec, and what differs then."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.recording import StartedQuery
from millstream.checking.scripts.interception.writers import record_setting
from millstream.checking.scripts.migration.spec_parts import build_sink, build_trigger


@pytest.mark.parametrize(
    ("settings", "trigger", "note"),
    [
        ({}, None, ""),
        ({"processingTime": "10 minutes"}, "10 minutes", ""),
        ({"processingTime": "INTERVAL 10 minutes"}, "10 minutes", ""),
        ({"processingTime": "1 minute 1.5 seconds"}, "1 minute 1500 milliseconds", ""),
        (
            {"processingTime": f"{MARK} seconds"},
            "${TRIGGER:-1 minute}",
            "the interval of the trigger is not known",
        ),
        (
            {"processingTime": "600000000 microseconds"},
            "${TRIGGER:-1 minute}",
            "the interval of the trigger is not",
        ),
        ({"continuous": "1 second"}, {"continuous": "1 second"}, ""),
        (
            {"continuous": MARK},
            {"continuous": "${TRIGGER:-1 minute}"},
            "the interval of the trigger is not known",
        ),
        ({"realTime": "5 minutes"}, {"real_time": "5 minutes"}, ""),
        ({"availableNow": True}, "available_now", ""),
        ({"availableNow": MARK}, "available_now", ""),
        ({"once": True}, "available_now", "the trigger once became available_now"),
    ],
)
def test_a_trigger_has_its_interval_or_a_variable_and_a_note(
    settings: dict[str, object], trigger: object, note: str
) -> None:
    query = StartedQuery(1, MagicMock())
    record_setting(query, "trigger", (), settings)

    built, notes = build_trigger(query)

    assert built == trigger
    assert [difference.startswith(note) for difference in notes] == ([True] if note else [])


@pytest.mark.parametrize(
    ("columns", "topic", "settings", "notes"),
    [
        ("value", "orders", {"topic": "orders"}, []),
        ("Key value", "orders", {"topic": "orders", "key": "Key"}, []),
        ("Topic value", "", {"topic_column": "Topic"}, []),
        ("topic value", "orders", {"topic": "orders"}, []),
        ("value", "", {"topic": "${TOPIC:-set-topic}"}, []),
        (
            "value headers partition",
            "orders",
            {"topic": "orders"},
            [
                "the column 'headers' of the records is left out",
                "the column 'partition' of the records is left out",
            ],
        ),
    ],
)
def test_a_topic_gets_the_columns_that_spark_writes_there(
    columns: str, topic: str, settings: dict[str, str], notes: list[str]
) -> None:
    options = {"kafka.bootstrap.servers": "b:1"} | ({"topic": topic} if topic else {})
    schema = StructType([StructField(name, StringType()) for name in columns.split()])
    query = StartedQuery(1, MagicMock(), format="kafka", options=options, columns=schema)

    sink, differences = build_sink(query)

    assert sink == {"kafka": {"bootstrap_servers": "b:1", "format": "raw", **settings}}
    assert differences == notes
