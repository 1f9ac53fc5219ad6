"""What is not stable when a batch runs again, and where it flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from millstream.analysis.query.plan_model import Operator, Stability

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

STABLE, BATCH, ORDER = Stability.STABLE, Stability.BATCH, Stability.ORDER
PARTITION, UNKNOWN, UNSTABLE = Stability.PARTITION, Stability.UNKNOWN, Stability.UNSTABLE

CLASSES = {
    "now()": UNSTABLE,
    "rand()": UNSTABLE,
    "rand(7)": UNSTABLE,
    "randn()": UNSTABLE,
    "random()": UNSTABLE,
    "uuid()": UNSTABLE,
    "shuffle(array(1, 2))": UNSTABLE,
    "randstr(3)": UNSTABLE,
    "uniform(1, 10)": UNSTABLE,
    "current_time()": UNSTABLE,
    "current_timestamp()": BATCH,
    "current_date()": BATCH,
    "localtimestamp()": BATCH,
    "curdate()": BATCH,
    "unix_timestamp()": BATCH,
    "spark_partition_id()": PARTITION,
    "monotonically_increasing_id()": PARTITION,
    "input_file_name()": PARTITION,
    "sha2(id, 256)": STABLE,
    "try_cast(id AS INT)": STABLE,
}
AGGREGATES = {
    "first(id)": ORDER,
    "last(id)": ORDER,
    "any_value(id)": ORDER,
    "collect_list(id)": ORDER,
    "max_by(id, n)": ORDER,
    "sum(v)": ORDER,
    "avg(v)": ORDER,
    "sum(n)": STABLE,
    "sum(CAST(v AS DECIMAL(20, 2)))": STABLE,
    "count(v)": STABLE,
    "max(v)": STABLE,
}


def tag(value):  # type: ignore[no-untyped-def]
    """A function as a user writes it, without types."""
    return value


def worst(root: Operator, column: str) -> Stability:
    """The least stable of what flows into a column."""
    order = list(Stability)
    actual = root.column(column)
    assert actual is not None
    return max((cause.stability for cause in actual.volatile), key=order.index, default=STABLE)


def flowing(root: Operator) -> dict[str, list[str]]:
    """The functions that flow into each column."""
    return {column.name: [cause.function for cause in column.volatile] for column in root.columns}


@pytest.mark.parametrize("written", CLASSES)
def test_an_expression_is(written: str, plan: Callable[..., Operator]) -> None:
    assert worst(plan(f"SELECT {written} AS x FROM clicks"), "x") is CLASSES[written]


@pytest.mark.parametrize("written", AGGREGATES)
def test_an_aggregate_function_is(written: str, plan: Callable[..., Operator]) -> None:
    assert worst(plan(f"SELECT id, {written} AS x FROM clicks GROUP BY id"), "x") is AGGREGATES[written]


def test_now_and_current_timestamp_are_told_apart(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT now() AS a, current_timestamp() AS b FROM clicks")

    assert flowing(root) == {"a": ["now"], "b": ["current_timestamp"]}


def test_a_users_function_is_unknown_unless_it_says_that_it_is_unstable(
    frames: dict[str, DataFrame], plan: Callable[..., Operator]
) -> None:
    plain, drawn = F.udf(tag, "string"), F.udf(tag, "string").asNondeterministic()

    root = plan(frames["clicks"].select(plain("id").alias("a"), drawn("id").alias("b")))

    assert (worst(root, "a"), worst(root, "b")) == (UNKNOWN, UNSTABLE)
    assert flowing(root) == {"a": ["tag"], "b": ["tag"]}


def test_it_flows_through_aliases_and_expressions(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT upper(k) AS loud, id FROM (SELECT uuid() AS k, id FROM clicks) LIMIT 5")

    assert flowing(root) == {"loud": ["uuid"], "id": []}


def test_it_flows_through_either_side_of_a_union(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id, n FROM clicks UNION ALL SELECT uuid() AS k, n FROM orders")

    assert flowing(root) == {"id": ["uuid"], "n": []}


def test_it_flows_through_the_side_of_a_join_that_has_it(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT c.id, o.r FROM clicks c JOIN (SELECT id, rand() AS r FROM orders) o ON c.id = o.id")

    assert flowing(root) == {"id": [], "r": ["rand"]}


def test_a_join_by_it_makes_every_row_doubtful(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT c.id FROM clicks c JOIN (SELECT uuid() AS id FROM orders) o ON c.id = o.id")

    assert flowing(root) == {"id": ["uuid"]}


def test_a_filter_by_it_makes_every_column_doubtful_also_a_count(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id, count(*) AS n, 1 AS one FROM clicks WHERE rand() < 0.5 GROUP BY id")

    assert flowing(root) == {"id": ["rand"], "n": ["rand"], "one": ["rand"]}


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (SELECT id FROM users WHERE rand() < 0.5)",
        "id NOT IN (SELECT uuid() AS id FROM users)",
        "EXISTS (SELECT 1 FROM users u WHERE u.id = clicks.id AND rand() < 0.5)",
        "id = (SELECT max(id) FROM users WHERE rand() < 0.5) OR n > 1",
    ],
)
def test_a_filter_by_a_subquery_of_it_makes_every_column_doubtful(
    condition: str, plan: Callable[..., Operator]
) -> None:
    assert worst(plan(f"SELECT id FROM clicks WHERE {condition}"), "id") is UNSTABLE


def test_the_value_of_a_subquery_makes_only_its_column_doubtful(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id, (SELECT max(city) FROM users WHERE rand() < 0.5) AS city FROM clicks")

    assert flowing(root) == {"id": [], "city": ["rand"]}


def test_a_filter_by_a_stable_subquery_makes_nothing_doubtful(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id FROM clicks WHERE id IN (SELECT id FROM users WHERE city = 'Rome')")

    assert flowing(root) == {"id": []}


def test_a_group_by_it_makes_every_figure_doubtful(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT k, count(*) AS n FROM (SELECT uuid() AS k FROM clicks) GROUP BY k")

    assert flowing(root) == {"k": ["uuid"], "n": ["uuid"]}


def test_an_aggregate_of_it_is_doubtful_and_its_key_is_not(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id, max(r) AS r FROM (SELECT id, rand() AS r FROM clicks) GROUP BY id")

    assert flowing(root) == {"id": [], "r": ["rand"]}


def test_what_is_left_out_does_not_flow(plan: Callable[..., Operator]) -> None:
    assert flowing(plan("SELECT id FROM (SELECT id, uuid() AS k FROM clicks)")) == {"id": []}


def test_a_function_over_a_batch_makes_all_that_it_gives_doubtful(
    frames: dict[str, DataFrame], plan: Callable[..., Operator]
) -> None:
    def same(rows: Any) -> Any:
        return rows

    root = plan(frames["clicks"].mapInPandas(same, "id string, m int").withColumn("one", F.lit(1)))

    assert flowing(root) == {"id": ["same"], "m": ["same"], "one": ["same"]}


def test_the_origins_of_a_column_are_the_columns_of_sources_it_is_made_of(
    plan: Callable[..., Operator],
) -> None:
    root = plan(
        "SELECT c.id AS who, u.city, concat(c.id, u.city) AS both, count(*) AS n "
        "FROM clicks c JOIN users u ON c.id = u.id GROUP BY c.id, u.city"
    )

    assert {column.name: (sorted(column.origins), column.is_copied) for column in root.columns} == {
        "who": ([("clicks", "id")], True),
        "city": ([("users", "city")], True),
        "both": ([("clicks", "id"), ("users", "city")], False),
        "n": ([], False),
    }
