"""Plans and records of queries, of which `verdict_cases.py` makes changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.checkpoint.metadata import QueryMetadata
from millstream.checkpoint.recorded_plan import (
    PlanExpression,
    RecordedPlan,
    RecordedStatefulOperator,
    RecordedWatermark,
)

KEY = PlanExpression(
    "window(orders.at, 10 minutes)", "struct<start:timestamp,end:timestamp>", nullable=False, name="window"
)
SUM = PlanExpression("sum(orders.v)", "bigint")
GROUPS = RecordedStatefulOperator(
    "aggregation", keys=(KEY, PlanExpression("orders.k", "string", name="k")), values=(SUM,)
)
JOIN = RecordedStatefulOperator(
    "stream-stream join",
    keys=(PlanExpression("orders.id", "string"),),
    right_keys=(PlanExpression("pays.id", "string"),),
    values=(PlanExpression("orders.id", "string"), PlanExpression("orders.v", "bigint")),
    right_values=(PlanExpression("pays.id", "string"),),
    join_type="Inner",
    condition=("(pays.at >= orders.at)",),
)
COLUMNS = (PlanExpression("orders.k", "string", name="k"),)
ON_KEY = "filter (orders.k = a)"
BIG, SMALL = ("filter (orders.v > 100)",), ("filter (orders.v <= 100)",)
UNION = "Union: Union false, false"
PAIR = [PlanExpression("orders.k", "string"), PlanExpression("orders.g", "string")]
DISTINCT, SWAPPED = (RecordedStatefulOperator("aggregation", keys=tuple(keys)) for keys in (PAIR, PAIR[::-1]))
WITHIN = RecordedStatefulOperator("deduplication within the watermark", keys=(PAIR[0],))
SUMS = RecordedStatefulOperator("aggregation", keys=(PAIR[0],), values=(SUM,))
SCHEMA = {"orders": {"json": {"path": "in"}, "schema": {"k": "string", "v": "bigint", "at": "timestamp"}}}


def bounded(minutes: str, join_type: str = "Inner") -> RecordedPlan:
    """A join whose pairs are at most so many minutes apart."""
    bound = f"(pays.at <= orders.at + INTERVAL '{minutes}' MINUTE)"
    return plan(replace(JOIN, join_type=join_type, condition=(*JOIN.condition, bound)))


def branched(first: tuple[str, ...], second: tuple[str, ...]) -> RecordedStatefulOperator:
    """The aggregation over a union of one source with itself, with the filters of the two branches."""
    branches = ("branch 1 of the union", "branch 2 of the union")
    return replace(
        GROUPS,
        input=(*first, *second, UNION),
        branches=(*branches[:1] * len(first), *branches[1:] * len(second), ""),
    )


def reading(*sources: tuple[str, str, str]) -> tuple[dict[str, str], ...]:
    """Kafka sources at the places of a plan: name, topics and folder in the checkpoint."""
    return tuple(
        {"name": name, "kind": "kafka", "topics": topics, "folder": folder}
        for name, topics, folder in sources
    )


def plan(*operators: RecordedStatefulOperator, **parts: Any) -> RecordedPlan:
    """A plan whose fingerprint follows from its content."""
    made = RecordedPlan("", stateful=operators, **{"columns": COLUMNS, **parts})
    return replace(made, fingerprint=str(hash(made.__repr__())))


def record(made: RecordedPlan | None, **parts: Any) -> QueryMetadata:
    """A record of a query over one source."""
    source = {"name": "orders", "kind": "json", "path": "/in", "folder": "0"}
    fields: dict[str, Any] = {
        "operators": (),
        "sources": (source,),
        "sinks": ({"key": "id/delta:out"},),
        "output_mode": "update",
        "pinned": {},
        "unpinned": {"spark.sql.session.timeZone": "UTC"},
        "versions": {"spark": "4.2.0"},
        "plan": made,
        "inputs": {"orders": {"json": {"path": "in"}}},
    }
    return QueryMetadata(query="q", query_id="id", **{**fields, **parts})


def with_key(text: str, type_: str = "string", *, nullable: bool = True) -> RecordedStatefulOperator:
    """The aggregation with another second key."""
    return replace(GROUPS, keys=(KEY, PlanExpression(text, type_, nullable)))


SOURCE = {"name": "pays", "kind": "json", "path": "/pays", "folder": "1"}
ORDERS, STATE = record(None).sources[0], plan(GROUPS)
WATERMARKED = plan(GROUPS, watermarks=(RecordedWatermark("orders.at", "10 minutes"),))
ZONE = {"spark.sql.session.timeZone": "Europe/Berlin"}
PARTITIONS = "spark.sql.shuffle.partitions"
