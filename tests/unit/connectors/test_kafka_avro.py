"""What is said of a sink's Avro values before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connectors.kafka.sink import KafkaSink
from millstream.spec.output_mode import OutputMode

CLICK = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": ["null", "int"]}],
}


def sink(**settings: Any) -> KafkaSink:
    """A sink whose other settings are right."""
    return KafkaSink.model_validate({"bootstrap_servers": "a:9092", "topic": "out", **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "avro"}, "format avro needs the schema of the values"),
        ({"avro_value": {"schema": CLICK}}, "avro_value is set, but the format is json"),
        (
            {"format": "avro", "avro_value": {"schema": CLICK, "header": "confluent"}},
            "a schema registry header needs the schema's id",
        ),
        (
            {"format": "avro", "avro_value": {"schema": CLICK, "id": 7}},
            "id has no effect without a header",
        ),
        (
            {"format": "avro", "avro_value": {"schema": CLICK}, "format_options": {"sep": ";"}},
            "format avro has no options",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_a_problem(settings: dict[str, Any], message: str) -> None:
    assert [problem.message for problem in sink(**settings).problems(OutputMode.APPEND)] == [message]


@pytest.mark.parametrize(
    ("columns", "messages"),
    [
        ({"id": "string", "n": "int"}, []),
        ({"ID": "string"}, []),
        ({"id": "string", "n": "bigint"}, ["column 'n' is bigint, but the Avro schema has int"]),
        ({"id": "string", "more": "int"}, ["column 'more' is not in the Avro schema"]),
        ({"n": "int"}, ["field 'id' of the Avro schema is not nullable, and no column provides it"]),
    ],
)
def test_columns_that_the_schema_does_not_take_are_a_problem(
    columns: dict[str, str], messages: list[str]
) -> None:
    kafka_sink = sink(format="avro", avro_value={"schema": CLICK})

    assert [problem.message for problem in kafka_sink.refuses(columns)] == messages
