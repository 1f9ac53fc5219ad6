"""A stateful function whose state the chosen store cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import StatefulFunction
from millstream.analysis.facts import Code, Facts
from millstream.diagnostics.finding import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)
INSTEAD_OF = ("STORE_BACKEND_NOT_SUPPORTED_FOR_TWS",)
_KEY = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """`transformWithState` keeps several values a key, which only RocksDB can."""
    if query.spark.get(_KEY, "").endswith("RocksDBStateStoreProvider"):
        return
    for function in query.of(StatefulFunction):
        if not function.node.startswith("TransformWithState"):
            continue
        yield CODE.error(
            f"query '{query.name}' uses transformWithState, whose state must be in RocksDB",
            _place(query, function, facts),
            why="Spark keeps state in the JVM's memory unless told otherwise, and that store has one value a key",
            fix=f"set {_KEY} to {_ROCKSDB}",
            edit=_edit(facts) if facts and _KEY not in query.spark else None,
            query=query.name,
        )
        return


def _place(query: PlannedQuery, function: StatefulFunction, facts: Facts | None) -> Span | None:
    """Where the cure goes: the setting, or the query that needs one; in a script the call."""
    if facts is None:
        return function.span or query.span
    return facts.places.key("spark", _KEY) if _KEY in query.spark else query.span


def _edit(facts: Facts) -> Edit | None:
    """The setting under `spark:`, or a section of its own below the name."""
    setting = f"  {_KEY}: {_ROCKSDB}"
    if facts.places.has("spark"):
        key, first = facts.places.key("spark"), facts.places.value("spark")
        return Edit(key.file, key.line, (setting,), safe=True) if first.line > key.line else None
    if not facts.places.has("name"):
        return None
    name = facts.places.value("name")
    return Edit(name.file, name.end_line, ("spark:", setting), safe=True)
