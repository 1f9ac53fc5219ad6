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
        ("SELECT * FROM a MATCH_X y z WHERE i IS DISTINCT FROM j", ["a"]),
        ("SELECT * FROM a MATCH_X y z, b GROUP BY k, j", ["a", "b"]),
        ("SELECT id, watermark FROM a WATERMARK ts DELAY OF INTERVAL 5 MINUTES", ["a"]),
        ("SELECT id AS watermark FROM a, b WATERMARK ts DELAY OF INTERVAL 5 MINUTES", ["a", "b"]),
        ("SELECT * FROM (SELECT * FROM a) WATERMARK ts DELAY OF INTERVAL 5 MINUTES s", ["a"]),
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
        "SELECT map(a, b), reduce(c, 0, (x, y) -> x + y), transform(d, x -> 1) FROM t JOIN u USING (k)",
        "SELECT map, reduce FROM t JOIN u USING(map)",
        "SELECT IDENTIFIER(:k), t.`a/b` FROM t GROUP BY t.`a/b`, IDENTIFIER(:k) ORDER BY 1, IDENTIFIER(:k)",
        "SELECT identifier FROM t JOIN u ON (IDENTIFIER(:k) = u.k) WHERE (IDENTIFIER(:k) > 1)",
        "SELECT trim(BOTH 'x' FROM t.`a/b`), a IS NOT DISTINCT FROM t.`a/b`, extract(YEAR FROM t.`a/b`) FROM t",
        "SELECT a FROM t WHERE a IS NOT DISTINCT FROM t.`a/b` OR b IS DISTINCT FROM t.`a/b`",
        "SELECT text.id, csv.`size` FROM text JOIN csv ON text.id = csv.id",
        "FROM t SELECT a, t.`a/b`",
        "FROM t |> EXTEND a AS b, IDENTIFIER(:k) AS c",
        "SELECT sum(a) OVER w, count(*) OVER v FROM t WINDOW w AS (PARTITION BY k), v AS (ORDER BY t.`a/b`)",
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
        "WITH x AS (FROM clicks MAP id USING 'sh -c …') SELECT * FROM x",
        "SELECT * FROM (REDUCE a USING 'cat' FROM t)",
        "SELECT TRANSFORM(a) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' USING r'cat' FROM t",
        "SELECT TRANSFORM(a) USING :program FROM t",
        "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
        "SELECT * FROM t WHERE a NOT IN (SELECT a FROM IDENTIFIER(:path))",
        "SELECT * FROM t, IDENTIFIER(:path)",
        "SELECT * FROM t JOIN u ON t.a = u.a, IDENTIFIER(:path)",
        "SELECT * FROM t select (a, b), IDENTIFIER(:path)",
        "SELECT * FROM t limit, IDENTIFIER(:path)",
        "SELECT * FROM (IDENTIFIER(:path) CROSS JOIN t)",
        "SELECT * FROM STREAM IDENTIFIER(:path)",
        "SELECT IDENTIFIER('reflect')('java.lang.System', 'exit', 1)",
        "SELECT c._c0 AS a, 1 AS watermark FROM csv.`/etc/passwd` c "
        "CROSS JOIN STREAM clicks WATERMARK ts DELAY OF INTERVAL 5 MINUTES",
        "SELECT a FROM t MATCH_X y z, csv.`/etc/passwd`",
        "SELECT * FROM (TABLE text.`/etc/passwd`)",
        "SELECT a FROM t UNION ALL TABLE delta.`/data/t`",
        "SELECT * FROM STREAM(delta.`/data/t`)",
        "FROM t |> JOIN delta.`/data/t`",
        "SELECT * FROM csv.passwd",
    ],
)
def test_what_a_view_may_not_do(sql: str) -> None:
    assert parse_sql(sql).denied


def test_parameters_are_found_and_json_paths_are_none() -> None:
    assert [mark.text for mark in parse_sql("SELECT a:b, ':no' FROM t WHERE x = :least").params] == ["least"]


@given(st.text(max_size=80))
def test_no_text_makes_it_raise(sql: str) -> None:
    assert all(0 <= mark.start < mark.stop <= len(sql) for mark in parse_sql(f"SELECT {sql}").tables) or sql
