"""List the state stores of a checkpoint, with the names that the query gives to their contents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.remote.path import to_spark_path
from millstream.diagnostics.failure import InvalidInput
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.checkpoint.recorded_plan import RecordedStatefulOperator
    from millstream.checkpoint.remote.path import CheckpointPath

_JOIN = "symmetricHashJoin"
_PROCESSOR = "transformWithState"
# The names that Spark gives to operators, and the kinds in a record's plan.
_KINDS = {
    "stateStoreSave": "aggregation",
    "sessionWindowStateStoreSaveExec": "aggregation",
    "dedupe": "deduplication",
    "dedupeWithinWatermark": "deduplication within the watermark",
    _JOIN: "stream-stream join",
    _PROCESSOR: "processor",
    "applyInPandasWithState": "processor",
    "globalLimit": "limit",
}


@dataclass(frozen=True)
class StateStore:
    """One part of an operator's state: all of it, one side of a join, or one variable of a processor.

    `options` are those with which Spark's data source reads it. `recorded` is the operator in the
    checkpoint's record, None if the record does not fit the state.
    """

    operator: int
    name: str
    part: str
    partitions: int
    first_batch: int
    last_batch: int
    options: dict[str, str]
    recorded: RecordedStatefulOperator | None = None

    @property
    def label(self) -> str:
        """The name for a person, such as `stream-stream join, left`."""
        kind = self.recorded.kind if self.recorded else _KINDS.get(self.name, self.name)
        return f"{kind}, {self.part}" if self.part else kind


def list_stores(
    spark: SparkSession, folder: CheckpointPath, record: QueryMetadata | None
) -> list[StateStore]:
    """List the state stores of a checkpoint, the operator nearest to the sinks first. Empty without state."""
    if not (folder / "state").is_dir():
        return []
    # In a session that has not run a query, the data source does not find the coordinator of the stores.
    internals.start_state_coordinator(spark)
    rows = spark.read.format("state-metadata").load(to_spark_path(folder)).collect()
    by_operator: dict[int, Any] = {}
    for row in rows:
        by_operator.setdefault(int(row["operatorId"]), row)
    operators = record.plan.stateful if record and record.plan else ()
    stores = []
    for number, row in sorted(by_operator.items()):
        recorded = operators[number] if len(operators) == len(by_operator) else None
        for part, options in _list_parts(row):
            stores.append(
                StateStore(
                    operator=number,
                    name=str(row["operatorName"]),
                    part=part,
                    partitions=int(row["numPartitions"]),
                    first_batch=int(row["minBatchId"]),
                    last_batch=int(row["maxBatchId"]),
                    options={"operatorId": str(number), **options},
                    recorded=recorded,
                )
            )
    return stores


def _list_parts(row: Any) -> list[tuple[str, dict[str, str]]]:
    name = str(row["operatorName"])
    if name.startswith(_JOIN):
        return [(side, {"joinSide": side}) for side in ("left", "right")]
    if name.startswith(_PROCESSOR):
        variables = json.loads(row["operatorProperties"] or "{}").get("stateVariables", [])
        variables = json.loads(variables) if isinstance(variables, str) else variables
        names = [str(variable["stateName"]) for variable in variables]
        # Names that begin with `$` are Spark's own: timers and indexes.
        return [(name, {"stateVarName": name}) for name in names if not name.startswith("$")]
    return [("", {})]


def choose_stores(stores: Sequence[StateStore], operator: int | None) -> list[StateStore]:
    """Return the stores of one operator, or all. Raises `InvalidInput` for an operator that does not exist."""
    chosen = [store for store in stores if operator in (None, store.operator)]
    if not chosen and stores:
        numbers = sorted({store.operator for store in stores})
        raise InvalidInput(
            f"there is no operator {operator} with state",
            "the operators are " + ", ".join(f"{number}" for number in numbers),
        )
    return chosen
