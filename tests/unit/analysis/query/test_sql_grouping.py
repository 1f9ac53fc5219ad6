"""Tables of a SQL text whose rows are grouped."""

from __future__ import annotations

import pytest

from millstream.analysis.query.sql_grouping import find_grouped_tables
from millstream.pipeline.sql.references import parse_sql


def names(sql: str, *times: str) -> list[str]:
    findings = find_grouped_tables(parse_sql(sql).tree, frozenset(times) if times else None)
    return [mark.text for mark in parse_sql(sql).tables if mark.start in findings]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, count(*) FROM s GROUP BY a",
        "SELECT DISTINCT a FROM s",
        "SELECT max(a) FROM s",
        "SELECT a FROM t JOIN (SELECT b, max(a) AS a FROM s GROUP BY b) AS x ON t.b = x.b",
        "WITH x AS (SELECT a FROM s) SELECT a, count(*) FROM x GROUP BY a",
    ],
)
def test_the_rows_below_a_grouping_are_grouped(sql: str) -> None:
    assert names(sql) == ["s"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM s",
        "SELECT max(a) OVER (PARTITION BY b) FROM s",
        "WITH x AS (SELECT a FROM s) SELECT a FROM x",
    ],
)
def test_other_rows_are_not(sql: str) -> None:
    assert names(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window(ts, '1 hour') AS w, count(*) FROM s GROUP BY 1",
        "SELECT count(*) FROM s GROUP BY window(ts, '1 hour')",
        "SELECT count(*) FROM s GROUP BY session_window(ts, '1 hour'), a",
        "SELECT date_trunc('hour', TS), count(*) FROM s GROUP BY date_trunc('hour', TS)",
        "SELECT window(ts, '1 hour').start AS since, count(*) FROM s GROUP BY 1",
        "SELECT count(*) FROM s GROUP BY CAST(ts AS TIMESTAMP)",
        "SELECT count(*) FROM s GROUP BY s.ts",
        "SELECT DISTINCT ts FROM s",
    ],
)
def test_a_window_and_a_column_of_time_group_by_time(sql: str) -> None:
    assert names(sql, "ts") == ["s"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, max(ts) FROM s GROUP BY a",
        "SELECT window(current_timestamp(), '1 hour'), count(*) FROM s GROUP BY 1",
        "SELECT count(*) FROM s",
        "SELECT CAST(ts AS DATE) AS day, count(*) FROM s GROUP BY 1",
        "SELECT to_date(ts) AS day, count(*) FROM s GROUP BY to_date(ts)",
        "SELECT hour(ts) AS hour, count(*) FROM s GROUP BY hour(ts)",
        "SELECT extract(MINUTE FROM ts), count(*) FROM s GROUP BY 1",
        "SELECT date_format(ts, 'E') AS day, count(*) FROM s GROUP BY 1",
        "SELECT ts IS NULL, count(*) FROM s GROUP BY ts IS NULL",
        "SELECT count(*) FROM s GROUP BY ts > TIMESTAMP'2026-01-01'",
    ],
)
def test_a_total_does_not_group_by_time(sql: str) -> None:
    assert names(sql, "ts") == []
