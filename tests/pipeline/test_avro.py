"""A source of Avro values: its columns without Spark, and what is wrong with it, where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.pipeline.spec_file import load_text

SPEC = """\
name: shop
sources:
  clicks:
    kafka: {bootstrap_servers: "a:9092", subscribe: clicks}
    %s
    watermark: {event_time: at, delay_threshold: 1 minute}
queries: {clicks: {to: {console: {}}}}
"""
CLICK = "{type: record, name: Click, fields: [{name: at, type: {type: long, logicalType: timestamp-millis}}]}"


def test_the_schema_says_the_columns() -> None:
    loaded = load_text("p.yml", SPEC % f"format: avro\n    avro_value: {{schema: {CLICK}}}", Path(), {})

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert loaded.pipeline.sources["clicks"].columns == {"at": "timestamp"}


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        ("format: avro", "MS014", "decodes avro but has no schema of its values"),
        (f"schema: {{at: timestamp}}\n    avro_value: {{schema: {CLICK}}}", "MS003", "its format is json"),
        (
            "format: avro\n    avro_value: {schema: none.avsc}",
            "MS003",
            "none.avsc cannot be read: No such file",
        ),
        ("format: avro\n    avro_value: {schema: '{'}", "MS003", "the Avro schema is not JSON"),
        ("format: avro\n    avro_value: {schema: {type: map, values: int}}", "MS003", "must be 'record'"),
        (
            f"format: avro\n    schema: {{at: date}}\n    avro_value: {{schema: {CLICK}}}",
            "MS003",
            "has columns that differ from its Avro schema",
        ),
        (
            f"format: avro\n    options: {{sep: x}}\n    avro_value: {{schema: {CLICK}}}",
            "MS003",
            "has options, but avro supports none",
        ),
    ],
)
def test_what_does_not_fit_is_a_finding_in_the_source(lines: str, code: str, said: str) -> None:
    findings = load_text("p.yml", SPEC % lines, Path(), {}).findings

    assert [(finding.code, said in finding.message) for finding in findings] == [(code, True)]
    assert findings[0].span is not None
    assert 3 <= findings[0].span.line <= 7
