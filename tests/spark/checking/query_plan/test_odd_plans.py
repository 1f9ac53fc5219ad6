"""Any plan that Spark analyses can be read; what is not understood is a plain operator or expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from millstream.analysis.query.plan_model import Expression, Operator, Read
from millstream.checking.query_plan import operators
from spark.checking.compat.cases import Frames, cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SQL = {
    "pivot": "SELECT * FROM (SELECT id, n, v FROM clicks) PIVOT (sum(v) FOR n IN (1, 2))",
    "unpivot": "SELECT * FROM (SELECT id, v, CAST(n AS DOUBLE) AS n FROM clicks) UNPIVOT (x FOR y IN (v, n))",
    "cube": "SELECT id, n, count(*) FROM clicks GROUP BY CUBE (id, n)",
    "rollup": "SELECT id, n, grouping_id(), count(*) FROM clicks GROUP BY ROLLUP (id, n)",
    "grouping sets": "SELECT id, n, grouping(id), count(*) FROM clicks GROUP BY GROUPING SETS ((id), (n))",
    "lateral view": "SELECT id, e FROM clicks LATERAL VIEW OUTER explode(split(id, ',')) t AS e",
    "inline": "SELECT inline(array(struct(1, id), struct(2, id))) FROM clicks",
    "lateral join": "SELECT * FROM clicks, LATERAL (SELECT city FROM users WHERE users.id = clicks.id)",
    "exists": "SELECT * FROM clicks WHERE EXISTS (SELECT 1 FROM users WHERE users.id = clicks.id)",
    "scalar subquery": "SELECT *, (SELECT max(city) FROM users) AS c FROM clicks",
    "not in": "SELECT * FROM clicks WHERE id NOT IN (SELECT id FROM users)",
    "cte twice": "WITH x AS (SELECT * FROM clicks), y AS (SELECT id FROM x) SELECT * FROM x JOIN y USING (id)",
    "nested cte": "WITH x AS (WITH z AS (SELECT id FROM clicks) SELECT * FROM z) SELECT * FROM x",
    "recursive": "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "natural join": "SELECT * FROM clicks NATURAL JOIN users",
    "values": "SELECT * FROM VALUES (1, 2), (3, 4) t(a, b)",
    "one row": "SELECT 1 AS x",
    "intersect": "SELECT id FROM users INTERSECT SELECT id FROM users",
    "except": "SELECT id FROM clicks EXCEPT SELECT id FROM users",
    "having": "SELECT id, count(*) AS c FROM clicks GROUP BY id HAVING count(*) > 1 ORDER BY c",
    "offset": "SELECT * FROM clicks LIMIT 3 OFFSET 1",
    "window function": "SELECT id, row_number() OVER (PARTITION BY id ORDER BY ts) AS r FROM clicks",
    "lambda": "SELECT transform(array(n), x -> x + rand()) AS t FROM clicks",
    "variant": "SELECT variant_get(parse_json(id), '$.a', 'int') AS k FROM clicks",
    "pipes": "FROM clicks |> WHERE n > 1 |> AGGREGATE count(*) AS c GROUP BY id",
    "table function": "SELECT * FROM range(3) r JOIN clicks ON clicks.n = r.id",
    "names with everything": "SELECT 'x\ny),Some(' AS q, id AS `we ird,\n#7-T5ms` FROM clicks",
    "intervals of months": "SELECT c.id FROM clicks c JOIN orders o ON o.ts > c.ts - INTERVAL 2 MONTHS",
    "stream keyword": "SELECT * FROM STREAM clicks",
    "watermark in sql": "SELECT * FROM STREAM plain WATERMARK ts DELAY OF INTERVAL 3 MINUTES",
    "filtered aggregate": "SELECT count(*) FILTER (WHERE n > 1) AS c FROM clicks",
    "hint": "SELECT /*+ BROADCAST(users) */ clicks.id FROM clicks JOIN users USING (id)",
    "types": "SELECT CAST(ts AS TIMESTAMP_NTZ), DATE'2020-01-01', X'00', NULL, map(1, n) FROM clicks",
    "months": "SELECT INTERVAL 1 MONTH AS m, INTERVAL '1-2' YEAR TO MONTH AS y FROM clicks",
}


def same(rows: Any) -> Any:
    """What it is given."""
    return rows


API: dict[str, Callable[[dict[str, DataFrame]], DataFrame]] = {
    "pivot": lambda f: f["clicks"].groupBy("id").pivot("n", [1, 2]).sum("v"),
    "cube over a window": lambda f: f["clicks"].cube("id", F.window("ts", "5 minutes")).count(),
    "union by name": lambda f: f["clicks"].unionByName(
        f["orders"].select("n", "ts"), allowMissingColumns=True
    ),
    "self join": lambda f: f["clicks"].alias("x").join(f["clicks"].alias("y"), F.expr("x.id = y.id")),
    "sample and repartition": lambda f: f["clicks"].sample(0.5).repartition(2, "id").coalesce(1),
    "sort within": lambda f: f["clicks"].sortWithinPartitions("id"),
    "observe": lambda f: f["clicks"].observe("m", F.count(F.lit(1)).alias("c")),
    "columns": lambda f: (
        f["clicks"].na.fill(0).drop("n").withColumnRenamed("id", "who").withColumns({"x": F.lit(1)})
    ),
    "structs": lambda f: f["clicks"].select(F.struct("id", "n").alias("s")).select("s.*", "s.id"),
    "generators": lambda f: f["clicks"].select("id", F.posexplode(F.split("id", ","))),
    "functions in a chain": lambda f: f["clicks"].mapInPandas(same, "x int").mapInArrow(same, "y int"),
    "nothing": lambda f: f["clicks"].select(),
}


@pytest.fixture
def _understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node may be given up: the net below the reader would hide what it cannot read."""

    def given_up(*given: Any) -> Any:
        raise AssertionError(f"not understood: {given[1].text}")

    monkeypatch.setattr("millstream.checking.query_plan.plan_reader._Builder._plain_operator", given_up)


def read_through(root: Operator) -> None:
    """Walk all there is, and look at each thing once."""
    for operator in root.walk():
        assert operator.node
        assert isinstance(operator, Read) is not bool(operator.inputs)
        for column in operator.columns:
            assert column.type
        for expression in operator.expressions:
            assert all(isinstance(item, Expression) for item in expression.walk())


@pytest.mark.usefixtures("_understood")
@pytest.mark.parametrize("name", SQL)
def test_an_odd_query_can_be_read(name: str, plan: Callable[..., Operator]) -> None:
    read_through(plan(SQL[name]))


@pytest.mark.usefixtures("_understood")
@pytest.mark.parametrize("name", API)
def test_an_odd_frame_can_be_read(
    name: str, frames: dict[str, DataFrame], plan: Callable[..., Operator]
) -> None:
    read_through(plan(API[name](frames)))


@pytest.mark.usefixtures("_understood")
def test_every_plan_of_the_verdicts_cases_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    tables = Frames.of(spark, str(tmp_path))

    for case in cases():
        read_through(operators(case.plan(tables)))


def test_a_plan_without_json_is_told_by_its_names(
    frames: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frames["clicks"].select("id")
    monkeypatch.setattr("millstream.checking.query_plan.plan_nodes.simple_class_name", _broken)

    root = operators(frame)

    assert [operator.node for operator in root.walk()] == [
        "Project",
        "EventTimeWatermark",
        "StreamingRelation",
    ]


def test_a_node_that_is_not_understood_is_a_plain_operator_with_its_columns(
    monkeypatch: pytest.MonkeyPatch, plan: Callable[..., Operator]
) -> None:
    monkeypatch.setattr("millstream.checking.query_plan.plan_reader.parse_fields", _broken)

    root = plan("SELECT id, n + 1 AS m FROM clicks WHERE rand() < 0.5")

    assert [(type(operator), operator.node) for operator in root.walk()][:2] == [
        (Operator, "Project"),
        (Operator, "Filter"),
    ]
    assert [(column.name, column.type) for column in root.columns] == [("id", "string"), ("m", "int")]


def _broken(entry: object, *_: object) -> str:
    raise ValueError(f"a shape that nobody knows: {entry}")


def test_no_secret_of_a_reader_is_in_the_plan(spark: SparkSession, plan: Callable[..., Operator]) -> None:
    frame = (
        spark.readStream.format("rate")
        .option("kafka.sasl.jaas.config", "user jack password hunter2")
        .option("ssl.truststore.password", "hunter2")
        .option("fs.s3a.access.key", "hunter2")
        .option("endpoint", "https://jack:hunter2@host/db?user=jack&password=hunter2")
        .option("rowsPerSecond", "5")
        .load()
    )

    root = plan(frame.select("value"))

    assert "hunter2" not in repr(root)
    (leaf,) = (read for read in root.walk() if isinstance(read, Read))
    assert (leaf.format, leaf.options["rowsPerSecond"]) == ("rate", "5")
