"""Two keywords without a space are recognised, and names that only look like them are left alone."""

from __future__ import annotations

import pytest

from millstream.pipeline.sql.references import parse_sql


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT a FROM t GROUPBY window(ts, '1 minute'), a", "GROUP BY"),
        ("SELECT a FROM t groupby a", "GROUP BY"),
        ("SELECT a FROM t ORDERBY a", "ORDER BY"),
        ("SELECT a FROM t LEFTJOIN u ON t.a = u.a", "LEFT JOIN"),
        ("SELECT row_number() OVER (PARTITIONBY a ORDER BY b) FROM t", "PARTITION BY"),
    ],
)
def test_the_two_keywords_are_proposed(sql: str, words: str) -> None:
    mistakes = parse_sql(sql).mistakes

    assert [mistake.message for mistake in mistakes][:1] == [
        f"'{words.replace(' ', '') if words.replace(' ', '') in sql else words.replace(' ', '').lower()}'"
        f" is not a SQL keyword; did you mean {words}?"
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT groupby FROM t",
        "SELECT t.groupby AS a FROM t",
        "SELECT a FROM t groupby WHERE a > 1",
        "SELECT a FROM groupby AS t",
        "SELECT 'GROUPBY a' AS b FROM t",
    ],
)
def test_a_name_that_looks_like_it_is_left_alone(sql: str) -> None:
    assert parse_sql(sql).mistakes == ()
