"""Values that a test feeds, as Spark reads them from the source's format."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load_text
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC = """
pipeline:
  name: shop
  sources:
    lines:
      kafka: {bootstrap_servers: "localhost:1", subscribe: lines}
      format: csv
      schema: {a: string, b: string, n: double, at: timestamp}
      options: {sep: "||", nullValue: "-", timestampFormat: "dd/MM/yyyy HH:mm:ss"}
    plain:
      kafka: {bootstrap_servers: "localhost:1", subscribe: plain}
      format: csv
      schema: {a: string, n: int}
      options: {QUOTE: "", delimiter: '\\t'}
    clicks:
      kafka: {bootstrap_servers: "localhost:1", subscribe: clicks}
      schema: {Event_ID: string, at: timestamp, place: "struct<Name: string>"}
      options: {timestampFormat: "dd/MM/yyyy HH:mm:ss"}
    zoned:
      kafka: {bootstrap_servers: "localhost:1", subscribe: zoned}
      schema: {at: timestamp, day: date, local: timestamp_ntz}
      options:
        timestampFormat: dd.MM.yyyy HH:mm
        dateFormat: dd.MM.yyyy
        timestampNTZFormat: dd.MM.yyyy HH:mm
        timeZone: America/New_York
    unformatted:
      kafka: {bootstrap_servers: "localhost:1", subscribe: unformatted}
      schema: {at: timestamp, local: timestamp_ntz}
      options: {timeZone: America/New_York}
    tables: {csv: tables, schema: {at: timestamp}, options: {timestampFormat: dd.MM.yyyy}}
    files: {parquet: files, schema: {payload: binary, ratio: double}}
    ticks: {rate: {}}
  queries:
    lines: {to: {memory: lines}}
    plain: {to: {memory: plain}}
    clicks: {to: {memory: clicks}}
    zoned: {to: {memory: zoned}}
    unformatted: {to: {memory: unformatted}}
    tables: {to: {memory: tables}}
    files: {to: {memory: files}}
    ticks: {to: {memory: ticks}}
tests:
"""
CASES = {
    "texts of CSV": r"""
        query: lines
        steps:
          - feed:
              lines:
                - {a: 'say "hi"', b: "", n: 1.5, at: "2026-01-31 12:00:00"}
                - {a: 'a\b', b: 'x||y', n: inf, at: null}
                - {a: null, b: 'ends with \'}
            expect:
              - {a: 'say "hi"', b: "", n: 1.5, at: "2026-01-31 12:00:00"}
              - {a: 'a\b', b: 'x||y', n: Infinity, at: null}
              - {a: null, b: 'ends with \', n: null}
    """,
    "lines of CSV without quotes": r"""
        query: plain
        steps:
          - feed: {plain: [{a: 'a "b"', n: 1}, {a: c, n: null}]}
            expect: [{a: 'a "b"', n: 1}, {a: c, n: null}]
    """,
    "names in another case, and times in a format, of JSON": """
        query: clicks
        steps:
          - feed: {clicks: [{event_id: a, AT: "2026-01-31 13:00:00+01:00", place: {name: x}}]}
            expect: [{Event_ID: a, at: "2026-01-31 12:00:00", place: {Name: x}}]
    """,
    "times in the zone of the source": """
        query: zoned
        steps:
          - feed: {zoned: [{at: "2026-01-31 01:00:00", day: 2026-01-31, local: "2026-01-31 01:00:00"}]}
            expect: [{at: "2026-01-31 01:00:00", day: 2026-01-31, local: "2026-01-31 01:00:00"}]
    """,
    "times without a format, in the zone of the source": """
        query: unformatted
        steps:
          - feed: {unformatted: [{at: "2026-01-31 01:00:00.5", local: "2026-01-31 01:00:00"}, {at: 2026-01-31}]}
            expect:
              - {at: "2026-01-31 01:00:00.5", local: "2026-01-31 01:00:00"}
              - {at: "2026-01-31 00:00:00", local: null}
    """,
    "times in the zone of the session": """
        query: clicks
        set: {spark: {spark.sql.session.timeZone: Asia/Tokyo}}
        steps:
          - feed: {clicks: [{event_id: a, at: "2026-01-31 12:00:00"}]}
            expect: [{event_id: a, at: "2026-01-31 12:00:00"}]
    """,
    "times of columns, in the zone of the session": """
        query: tables
        set: {spark: {spark.sql.session.timeZone: Asia/Tokyo}}
        steps:
          - feed: {tables: [{at: "2026-01-31 12:00:00"}]}
            expect: [{at: "2026-01-31 12:00:00"}]
    """,
    "times of columns next to options for messages": """
        query: tables
        steps:
          - feed: {tables: [{at: "2026-01-31 12:00:00"}]}
            expect: [{at: "2026-01-31 12:00:00"}]
    """,
    "bytes and special floats of columns": """
        query: files
        steps:
          - feed: {files: [{payload: hello, ratio: nan}, {Payload: "AQI=", ratio: -inf}]}
            expect: [{payload: hello, ratio: NaN}, {payload: "AQI=", ratio: -Infinity}]
    """,
    "a column of a kind in another case": """
        query: ticks
        steps:
          - feed: {ticks: [{Value: 1}]}
            expect: [{value: 1}]
    """,
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_value_arrives_as_it_was_fed(spark: SparkSession, tmp_path: Path, case: str) -> None:
    text = SPEC + "  one:\n" + indent(dedent(case), "    ")
    suite = load_text("case.yml", text, tmp_path / "case.yml", lambda _: {})
    assert [finding.message for finding in suite.findings] == []

    outcome = run_case(spark, suite.cases[0], tmp_path / "stage")

    assert outcome.fault is None
    assert [step_result.differences for step_result in outcome.results] == [()]
