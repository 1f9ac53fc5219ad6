"""What SQL says without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.pipeline.sql.references import parse_sql


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM a JOIN b USING (k)", ["a", "b"]),
        ("SELECT * FROM a, b, LATERAL explode(c) t", ["a", "b"]),
        ("WITH x AS (SELECT * FROM a) SELECT * FROM x", ["a"]),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
        ("SELECT * FROM a WHERE k IN (SELECT k FROM b)", ["a", "b"]),
        ("SELECT * FROM `a`", ["a"]),
        ("SELECT * FROM default.prices", []),
        ("SELECT extract(year FROM ts) FROM a", ["a"]),
        ("SELECT * FROM range(10)", []),
        ("SELECT count(*) FROM a GROUP BY window(ts, '15 minutes'), k", ["a"]),
        ("SELECT * FROM STREAM b", ["b"]),
        ("SELECT * FROM STREAM(b) s", ["b"]),
        ("SELECT * FROM a WATERMARK ts DELAY OF INTERVAL 5 MINUTES JOIN b", ["a", "b"]),
        ("FROM a SELECT k", ["a"]),
        ("SELECT * FROM a MATCH_X y z, b", ["a", "b"]),
        ("SELECT /*+ BROADCAST(c) */ * FROM a JOIN b c USING (k)", ["a", "b"]),
        ("SELECT /*+ SHUFFLE_HASH(o, c) */ * FROM a o JOIN b c USING (k)", ["a", "b"]),
    ],
)
def test_names_that_are_read(sql: str, names: list[str]) -> None:
    assert [mark.text for mark in parse_sql(sql).tables] == names


def test_a_name_stands_where_its_characters_are() -> None:
    sql = "SELECT 'é'\nFROM `my orders` o"

    (mark,) = parse_sql(sql).tables

    assert sql[mark.start : mark.stop] == "`my orders`"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT (a FROM t", "never closed"),
        ("SELECT a) FROM t", "closes nothing"),
        ("SELECT 'a FROM t", "never closed"),
        ("SELEC a FROM t", "did you mean SELECT?"),
        ("SELECT a FROM WHERE b", "names no table"),
        ("SELECT a FROM", "nothing follows"),
        ("-- nothing", "there is no SQL"),
    ],
)
def test_a_sure_mistake(sql: str, words: str) -> None:
    assert words in parse_sql(sql).mistakes[0].message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM order WHERE a > 1",
        "SELECT a FROM t |> WHERE a > 1",
        "SELECT a IS DISTINCT FROM b FROM t",
        "SELECT * FROM clicks WATERMARK ts DELAY OF INTERVAL '5' MINUTES",
    ],
)
def test_what_only_spark_can_parse_is_no_mistake(sql: str) -> None:
    assert (parse_sql(sql).mistakes, parse_sql(sql).denied) == ((), ())


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE x",
        "SET a = 1",
        "ADD JAR 'x.jar'",
        "CREATE FUNCTION f AS 'a.b' USING JAR 'x.jar'",
        "INSERT INTO t SELECT 1",
        "FROM a INSERT INTO t SELECT *",
        "SELECT 1; DROP TABLE x",
        "SELECT reflect('java.lang.System', 'exit', 1) FROM a",
        "SELECT java_method ('a', 'b') FROM a",
        "SELECT try_reflect('a', 'b') FROM a",
        "SELECT TRANSFORM(a) USING 'cat' FROM t",
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM (SELECT * FROM text.`file:/etc/passwd`) x",
    ],
)
def test_what_a_view_may_not_do(sql: str) -> None:
    assert parse_sql(sql).denied


def test_parameters_are_found_and_json_paths_are_none() -> None:
    assert [mark.text for mark in parse_sql("SELECT a:b, ':no' FROM t WHERE x = :least").params] == ["least"]


@given(st.text(max_size=80))
def test_no_text_makes_it_raise(sql: str) -> None:
    assert all(0 <= mark.start < mark.stop <= len(sql) for mark in parse_sql(f"SELECT {sql}").tables) or sql
