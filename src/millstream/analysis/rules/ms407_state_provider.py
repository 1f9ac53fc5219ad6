"""The configured state store does not support a stateful function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import StatefulFunction
from millstream.analysis.rule_context import Code, Facts
from millstream.diagnostics.finding import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)
INSTEAD_OF = ("STORE_BACKEND_NOT_SUPPORTED_FOR_TWS",)
_KEY = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report `transformWithState` without RocksDB: it stores several values per key, which only RocksDB supports."""
    if query.spark.get(_KEY, "").endswith("RocksDBStateStoreProvider"):
        return
    for function in query.of(StatefulFunction):
        if not function.node.startswith("TransformWithState"):
            continue
        yield CODE.error(
            f"query '{query.name}' uses transformWithState, which needs the RocksDB state store",
            _find_span(query, function, facts),
            why="Spark's default state store, in the memory of the JVM, supports only one value per key",
            fix=f"set {_KEY} to {_ROCKSDB}",
            edit=_build_edit(facts) if facts and _KEY not in query.spark else None,
            query=query.name,
        )
        return


def _find_span(query: PlannedQuery, function: StatefulFunction, facts: Facts | None) -> Span | None:
    """Return the span of the setting, or of the query that needs one; in a script, of the call."""
    if facts is None:
        return function.span or query.span
    return facts.places.key("spark", _KEY) if _KEY in query.spark else query.span


def _build_edit(facts: Facts) -> Edit | None:
    """Add the setting under `spark:`, or in a new section below the name."""
    setting = f"{_KEY}: {_ROCKSDB}"
    if facts.places.has("spark"):
        key, first = facts.places.key("spark"), facts.places.value("spark")
        if first.line <= key.line:
            return None
        return Edit(key.file, key.line, (" " * (first.column - 1) + setting,), is_safe=True)
    if not facts.places.has("name"):
        return None
    name = facts.places.value("name")
    return Edit(name.file, name.end_line, ("spark:", f"  {setting}"), is_safe=True)
