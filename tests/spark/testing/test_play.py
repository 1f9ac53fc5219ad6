"""What a case may say, played on Spark: time, sources, views, clocks, dead letters, errors."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load_text
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.model import Outcome

SPEC = """
pipeline:
  name: shop
  sources:
    clicks:
      kafka: {bootstrap_servers: "localhost:1", subscribe: clicks}
      schema: {id: string, user: string, at: timestamp, n: int}
      keep: [offset, timestamp, headers]
      watermark: {event_time: at, delay_threshold: 5 minutes}
      on_malformed: dead_letter
    buys:
      json: buys
      schema: {id: string, bought: timestamp, price: "decimal(9,2)"}
      watermark: {event_time: bought, delay_threshold: 10 minutes}
    users: {parquet: users, static: true, schema: {user: string, name: string}}
    away: {parquet: nowhere, static: true}
  views:
    counts: |
      SELECT window.start AS begin, count(*) AS many FROM clicks GROUP BY window(at, '10 minutes')
    named: SELECT c.id, u.name FROM clicks c LEFT JOIN users u ON c.user = u.user
    loud: SELECT id, upper(name) AS name FROM named
    sold: SELECT c.id, b.price FROM clicks c JOIN buys b ON c.id = b.id
    totals: SELECT user, sum(n) AS total FROM clicks GROUP BY user
    stamped: SELECT id, current_timestamp() AS read, offset, timestamp, headers FROM clicks
    halves: SELECT id, 10 / n AS half FROM clicks
    idle: {python: "transforms:idle"}
    lost: SELECT * FROM away
    inverted: SELECT id, 10 / n AS part FROM clicks
    ids: SELECT id FROM inverted
    refused: SELECT id, unknown FROM clicks
    after_refused: SELECT id FROM refused
    raising: {python: "transforms:raising"}
    offline: {python: "transforms:offline"}
    wrong_call: {python: "transforms:wrong_call"}
  queries:
    ids: {to: {memory: ids}}
    copied: {from: ids, to: {parquet: copied}}
    refused: {to: {parquet: refused}}
    after_refused: {to: {memory: after_refused}}
    raising: {to: {memory: raising}}
    offline: {to: {memory: offline}}
    wrong_call: {to: {memory: wrong_call}}
    counts: {output_mode: update, to: {memory: counts}}
    loud: {to: {memory: loud}}
    sold: {to: {memory: sold}}
    totals: {output_mode: complete, to: {memory: totals}}
    stamped: {to: {memory: stamped}}
    halves: {to: {memory: halves}}
    idle: {output_mode: update, to: {memory: idle}}
tests:
"""

TRANSFORMS = """
import pandas as pd
from pyspark.sql.streaming.state import GroupStateTimeout


def watch(key, rows, state):
    if state.hasTimedOut:
        state.remove()
        yield pd.DataFrame({"user": [key[0]], "what": ["idle"]})
        return
    state.update((1,))
    state.setTimeoutDuration(60_000)
    yield pd.DataFrame({"user": [key[0]], "what": ["seen"]})


def raising(clicks):
    return clicks.join({}["rates"], "id")


def idle(clicks):
    return clicks.groupBy("user").applyInPandasWithState(
        watch, "user STRING, what STRING", "n INT", "update", GroupStateTimeout.ProcessingTimeTimeout
    )


def offline(clicks):
    raise ConnectionRefusedError("rates")


def wrong_call(clicks):
    return clicks._jdf.unknown()
"""


def run_test(spark: SparkSession, folder: Path, case: str) -> Outcome:
    """The outcome of one case, given as the YAML below its name."""
    (folder / "transforms.py").write_text(TRANSFORMS)
    text = SPEC + "  one:\n" + indent(dedent(case), "    ")
    suite = load_text("case.yml", text, folder / "case.yml", lambda _: {})
    assert [finding.message for finding in suite.findings] == []
    (item,) = suite.cases
    return run_case(spark, item, folder / "stage")


CASES = {
    "a late row is dropped, and one within the delay is not": """
        query: counts
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:01:00"}]}
            expect: [{begin: "2026-01-01 12:00:00", many: 1}]
            expect_watermark: "2026-01-01 11:56:00"
            expect_state: 1
          - feed: {clicks: [{id: b, at: "2026-01-01 12:14:00"}]}
            expect: [{begin: "2026-01-01 12:10:00", many: 1}]
            expect_state: 2
          - feed: {clicks: [{id: c, at: "2026-01-01 12:09:30"}, {id: d, at: "2026-01-01 12:30:00"}]}
            expect: [{begin: "2026-01-01 12:00:00", many: 2}, {begin: "2026-01-01 12:30:00", many: 1}]
            expect_state: {stateStoreSave: 1}
          - feed: {clicks: [{id: e, at: "2026-01-01 12:09:30"}]}
            expect: []
            expect_dropped: 1
    """,
    "two sources are read by one batch": """
        query: sold
        steps:
          - feed:
              clicks: [{id: a, at: "2026-01-01 12:00:00"}]
              buys: [{id: a, bought: "2026-01-01 12:01:00", price: 1.50}, {id: b, bought: "2026-01-01 12:01:00"}]
            expect: [{id: a, price: 1.5}]
          - feed: {clicks: [{id: b, at: "2026-01-01 12:00:00"}]}
            expect: [{id: b, price: null}]
    """,
    "static rows are joined, and the views between are seen": """
        query: loud
        static: {users: [{user: u1, name: ann}]}
        steps:
          - feed:
              clicks: [{id: a, user: u1, at: "2026-01-01 12:00:00"}, {id: b, user: u2, at: "2026-01-01 12:00:00"}]
            expect:
              "": [{id: a, name: ANN}, {id: b, name: null}]
              loud: [{name: ANN}, {name: null}]
              named: [{id: a, name: ann}, {id: b, name: null}]
              clicks: [{id: a, user: u1}, {id: b, user: u2}]
              memory: [{id: a}, {id: b}]
          - feed: {clicks: [{id: c, user: u1, at: "2026-01-01 12:00:00"}]}
            expect: {named: [{id: c, name: ann}], clicks: [{id: c}]}
    """,
    "complete mode tells all rows each time": """
        query: totals
        steps:
          - feed: {clicks: [{user: u1, n: 1, at: "2026-01-01 12:00:00"}]}
            expect: [{user: u1, total: 1}]
          - feed: {clicks: [{user: u2, n: 2, at: "2026-01-01 12:00:00"}]}
            expect: [{user: u1, total: 1}, {user: u2, total: 2}]
    """,
    "the clock stands where the case says, and goes on when it says": """
        query: stamped
        now: "2026-03-01 08:00:00"
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}
            expect: [{id: a, read: "2026-03-01 08:00:00", offset: 0, timestamp: "2026-03-01 08:00:00"}]
          - feed: {clicks: [{id: b, at: "2026-01-01 12:00:00", timestamp: "2026-01-01 11:00:00", headers: {h: x}}]}
            expect: [{id: b, read: "2026-03-01 08:00:00", offset: 1, timestamp: "2026-01-01 11:00:00"}]
          - advance: 90 minutes
            feed: {clicks: [{id: c, at: "2026-01-01 12:00:00"}]}
            expect: [{id: c, read: "2026-03-01 09:30:00"}]
          - restart
          - feed: {clicks: [{id: d, at: "2026-01-01 12:00:00"}]}
            expect: [{id: d, read: "2026-03-01 09:30:00", offset: 3}]
    """,
    "a time-out by the clock comes when the clock goes on": """
        query: idle
        steps:
          - feed: {clicks: [{user: u1, at: "2026-01-01 12:00:00"}]}
            expect: [{user: u1, what: seen}]
          - advance: 59 seconds
            expect: []
          - advance: 2 seconds
            expect: [{user: u1, what: idle}]
    """,
    "malformed records are dead letters with their place": """
        query: counts
        steps:
          - feed:
              clicks:
                - {id: a, at: "2026-01-01 12:01:00"}
                - record: {value: "{broken", key: k, partition: 1, offset: 7}
                - record: {value_base64: "/w=="}
                - record: {value: '{"id": "b", "at": "2026-01-01 12:02:00"}', topic: clicks}
            expect: [{begin: "2026-01-01 12:00:00", many: 2}]
            expect_dead_letters:
              - {source: clicks, reason: "not JSON", value: "{broken", topic: clicks, partition: 1, offset: 7}
              - {source: clicks, reason: "not UTF-8", offset: 1}
          - feed: {clicks: [{id: a, at: "2026-01-01 12:01:00"}]}
            expect_dead_letters: 0
          - feed: {clicks: [{id: a}]}
            crash: after_sink
            expect: []
            expect_dead_letters: [{reason: "at is missing"}]
    """,
    "what ends the query is expected, and the batch comes again": """
        query: halves
        steps:
          - feed: {clicks: [{id: a, n: 0, at: "2026-01-01 12:00:00"}]}
            expect_error: "DIVIDE_BY_ZERO"
          - restart_with: {views.halves: "SELECT id, try_divide(10, n) AS half FROM clicks"}
            expect: [{id: a, half: null}]
    """,
    "a later version has another view and another sink": """
        query: loud
        static: {users: [{user: u1, name: ann}]}
        steps:
          - feed: {clicks: [{id: a, user: u1, at: "2026-01-01 12:00:00"}]}
            expect: {"": [{id: a, name: ANN}], named: [{id: a, name: ann}]}
          - restart_with:
              views.short: SELECT id, name AS first FROM named
              views.loud: SELECT id, upper(first) AS name FROM short
              queries.loud.to: [{memory: loud}, {parquet: loud}]
            feed: {clicks: [{id: b, user: u1, at: "2026-01-01 12:00:00"}]}
            expect: {short: [{id: b, first: ann}], parquet: [{id: b, name: ANN}]}
          - feed: {clicks: [{id: c, user: u1, at: "2026-01-01 12:00:00"}]}
            expect: {short: [{id: c, first: ann}], named: [{id: c, name: ann}]}
    """,
    "a query reads another view in a later version": """
        query: copied
        steps:
          - feed: {clicks: [{id: a, n: 2, at: "2026-01-01 12:00:00"}]}
            expect: {ids: [{id: a}], inverted: [{id: a, part: 5.0}]}
          - restart_with: {queries.copied.from: inverted}
            feed: {clicks: [{id: b, n: 5, at: "2026-01-01 12:00:00"}]}
            expect: {inverted: [{id: b, part: 2.0}]}
    """,
    "a real sink has no rows before the query starts": """
        query: copied
        sinks: real
        steps:
          - expect: {parquet: []}
          - feed: {clicks: [{id: a, n: 1, at: "2026-01-01 12:00:00"}]}
            expect: {parquet: [{id: a}]}
    """,
    "a query that cannot start has written nothing": """
        query: refused
        sinks: real
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}
            expect: {parquet: []}
            expect_error: "unknown"
    """,
    "a query that cannot start has the error of a view whose rows are expected": """
        query: after_refused
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}
            expect: {refused: []}
            expect_error: "unknown"
    """,
    "a function that raises when its view is built ends the query": """
        query: raising
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}
            expect_error: "view 'raising': KeyError: 'rates' (transforms.py:17)"
    """,
    "a function that cannot connect to its server ends the query": """
        query: offline
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}
            expect_error: "view 'offline': ConnectionRefusedError: rates (transforms.py:27)"
    """,
    "a function whose call Java refuses ends the query": """
        query: wrong_call
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}
            expect_error: >-
              view 'wrong_call': Py4JError: py4j.Py4JException: Method unknown([]) does not exist (transforms.py:31)
    """,
    "what Spark refuses of a later version is expected": """
        query: counts
        steps:
          - feed: {clicks: [{id: a, at: "2026-01-01 12:01:00"}]}
          - restart_with: {views.counts: "SELECT user, count(*) AS many, max(n) AS top FROM clicks GROUP BY user"}
            feed: {clicks: [{id: a, at: "2026-01-01 12:01:00"}]}
            expect_error: "STATE_STORE"
    """,
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_case_is_played_as_it_says(spark: SparkSession, tmp_path: Path, case: str) -> None:
    outcome = run_test(spark, tmp_path, case)

    assert outcome.fault is None
    assert [step_result.differences for step_result in outcome.results] == [()] * len(outcome.case.steps)


def test_playing_ends_at_the_first_difference(spark: SparkSession, tmp_path: Path) -> None:
    step = '- feed: {clicks: [{user: u1, n: 1, at: "2026-01-01 12:00:00"}]}'

    outcome = run_test(spark, tmp_path, f"query: totals\nsteps:\n  {step}\n    expect: []\n  {step}\n")

    (step_result,) = outcome.results
    assert step_result.differences[0].what == "rows of query 'totals'"


def test_a_source_that_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    case = 'query: loud\nsteps: [{feed: {clicks: [{id: a, at: "2026-01-01 12:00:00"}]}}]'

    outcome = run_test(spark, tmp_path, case)

    assert not outcome.has_passed
    assert "users" in (outcome.results[0].error or "")


def test_a_view_that_fails_although_its_query_does_not_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    step = '- feed: {clicks: [{id: a, n: 0, at: "2026-01-01 12:00:00"}]}'

    outcome = run_test(
        spark, tmp_path, f"query: ids\nsteps:\n  {step}\n    expect: {{inverted: [{{id: a}}]}}\n"
    )

    assert outcome.fault is not None
    assert outcome.fault.startswith("the rows of 'inverted' cannot be collected: ")
    assert "DIVIDE_BY_ZERO" in outcome.fault
