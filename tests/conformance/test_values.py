"""Every form of a message's value: what the sink writes the source reads, and what is none of its form is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.writer import KafkaWriter
from millstream.frames.decode import REASON, decode_rows, select_view_columns
from millstream.pipeline.model import Format, SourceEntry
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

KAFKA = {"bootstrap_servers": ["127.0.0.1:1"]}
OWNER = SinkIdentity("shop", "copy", "an-id", "kafka:out", OutputMode.APPEND)
ROWS = [("a, \"b\" 'c' \\ d", 1), ("ä€😀", None), ("", 3)]
RECORD = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "k", "type": ["null", "string"]}, {"name": "v", "type": ["null", "int"]}],
}
AVRO: dict[str, Any] = {"schema": RECORD}

# Each form with the settings that the source and the sink share.
FORMS: list[tuple[Format, dict[str, Any]]] = [
    (Format.JSON, {}),
    (Format.CSV, {}),
    (Format.AVRO, {"avro_value": AVRO}),
    (Format.AVRO, {"avro_value": {**AVRO, "header": "confluent", "id": 4_000_000_000}}),
    (Format.RAW, {}),
]
forms = pytest.mark.parametrize(
    ("form", "settings"),
    FORMS,
    ids=[
        f"{form}{'-with-header' * ('header' in messages.get('avro_value', {}))}" for form, messages in FORMS
    ],
)


def entry(form: Format, settings: dict[str, Any]) -> SourceEntry:
    """A source of that form."""
    schema = {} if form in (Format.AVRO, Format.RAW) else {"schema": {"k": "string", "v": "int"}}
    kafka = {"kafka": {**KAFKA, "subscribe": "in"}}
    return SourceEntry.model_validate({**kafka, "format": form.value, **schema, **settings})


def write_and_read(rows: DataFrame, form: Format, settings: dict[str, Any]) -> DataFrame:
    """The values that the sink makes of rows, as a topic would hold them."""
    sink = KafkaSink.model_validate({**KAFKA, "topic": "out", "format": form.value, **settings})
    return KafkaWriter(sink, OWNER).records(rows, 0).selectExpr("CAST(value AS BINARY) AS value")


def test_no_form_is_left_out() -> None:
    assert {form for form, _ in FORMS} == set(Format)


@forms
def test_what_the_sink_writes_the_source_reads(
    form: Format, settings: dict[str, Any], spark: SparkSession
) -> None:
    rows = spark.createDataFrame(ROWS, "k STRING, v INT")
    if form is Format.RAW:
        rows = rows.selectExpr("CAST(k AS BINARY) AS value")
    source = entry(form, settings)

    judged = decode_rows(source, write_and_read(rows, form, settings))

    assert [row[REASON] for row in judged.collect()] == [None] * len(ROWS)
    if form is Format.CSV:
        # Its readers take an empty text for none.
        rows = rows.selectExpr("nullif(k, '') AS k", "v")
    assert judged.select(*select_view_columns(source, judged)).collect() == rows.collect()


@forms
def test_a_value_of_no_form_has_a_reason(form: Format, settings: dict[str, Any], spark: SparkSession) -> None:
    raw = spark.sql("SELECT X'ff00fe2c22' AS value UNION ALL SELECT NULL")

    reasons = [row[REASON] for row in decode_rows(entry(form, settings), raw).select(REASON).collect()]

    # What is not decoded cannot be malformed.
    assert [reason is None for reason in reasons] == [form is Format.RAW] * 2
