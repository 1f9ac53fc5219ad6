"""A call on a DataFrame as a chain of names: what it starts from, which methods, and what it is given."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

PERSIST = frozenset({"persist", "cache", "checkpoint", "localCheckpoint"})
VIEWS = frozenset({"createOrReplaceTempView", "createTempView", "registerTempTable"})
# Methods after which a DataFrame has as many rows as before.
KEEP_ALL_ROWS = PERSIST | {
    "select", "selectExpr", "withColumn", "withColumns", "withColumnRenamed", "withColumnsRenamed", "drop",
    "alias", "toDF", "orderBy", "sort", "repartition", "coalesce", "fillna",
}  # fmt: skip
_FORMATS = frozenset({"parquet", "json", "csv", "orc", "text", "jdbc"})
# Spark's own formats of files, and Delta; a write without a format is one of Parquet.
_FILES = frozenset({"", "parquet", "json", "csv", "orc", "text", "avro", "delta"})
# The place of the mode among the arguments of `jdbc`: url, table, mode, properties.
_JDBC_MODE = 3
_WRITES = _FORMATS | {"save", "saveAsTable", "insertInto", "append", "overwrite", "overwritePartitions"}
_WRITES |= {"create", "createOrReplace", "replace"}
_RUNS = frozenset({"collect", "toPandas", "toArrow", "toLocalIterator", "foreach", "foreachPartition"})
_GROUPS = frozenset({"groupBy", "groupby", "rollup", "cube"})
# A write that says by these which batch it is: Delta passes over one that it holds.
_REPLAYED = frozenset({"txnAppId", "txnVersion"})


@dataclass(frozen=True)
class Call:
    """`df.write.mode("append").save(path)`: root `df`, names write, mode, save.

    `given` are the names among the arguments of all its calls, by place, `""` for another expression; `named`
    those that the last call is given by keyword. `spoken` are its constants: (method, argument).
    """

    node: ast.expr
    root: str
    names: tuple[str, ...]
    given: tuple[str, ...]
    named: dict[str, str]
    spoken: tuple[tuple[str, object], ...]

    @classmethod
    def of(cls, node: ast.expr) -> Call:
        """The chain that an expression is; of another expression the root is empty."""
        names: list[str] = []
        calls: list[tuple[str, ast.Call]] = []
        here = node
        while isinstance(here, ast.Call | ast.Attribute | ast.Subscript):
            if isinstance(here, ast.Call):
                inside = here.func
                calls.append((inside.attr if isinstance(inside, ast.Attribute) else "", here))
                here = inside
            elif isinstance(here, ast.Attribute):
                names.append(here.attr)
                here = here.value
            else:
                here = here.value
        root = here.id if isinstance(here, ast.Name) else ""
        given = [_root(one) for _, call in reversed(calls) for one in (*call.args, *_values(call))]
        last = node.keywords if isinstance(node, ast.Call) else []
        named = {one.arg: _root(one.value) for one in last if one.arg}
        spoken = [
            (name if key is None else key, one.value)
            for name, call in reversed(calls)
            for key, one in ((None, arg) for arg in call.args)
            if isinstance(one, ast.Constant)
        ]
        spoken += [
            (one.arg or "", one.value.value)
            for _, call in calls
            for one in call.keywords
            if isinstance(one.value, ast.Constant)
        ]
        return cls(node, root, tuple(reversed(names)), tuple(given), named, tuple(spoken))

    @property
    def runs(self) -> bool:
        """Does it run every row of the DataFrame at its root?"""
        if not self.names or not isinstance(self.node, ast.Call):
            return False
        last = self.names[-1]
        if last == "count":
            return len(self.names) < 2 or self.names[-2] not in _GROUPS
        return last in _RUNS or written(self) is not None


def written(call: Call) -> str | None:
    """The format a write has, empty where it is not said; None for a call that is no write."""
    if not {"write", "writeTo"} & {*call.names[:-1]} or call.names[-1] not in _WRITES:
        return None
    said = [str(value).lower() for method, value in call.spoken if method == "format"]
    return said[-1] if said else call.names[-1] if call.names[-1] in _FORMATS else ""


def adds(call: Call) -> bool:
    """Does a write only add rows, and not know that it holds a batch already?"""
    if any(value in _REPLAYED for _, value in call.spoken) or _REPLAYED & {name for name, _ in call.spoken}:
        return False
    modes = [str(value).lower() for method, value in call.spoken if method == "mode"]
    if call.names[-1] == "jdbc" and not modes:
        # jdbc(url, table, mode, …)
        modes = [
            str(value)
            for method, value in call.spoken
            if method == "jdbc" and value in ("append", "overwrite")
        ]
    if modes:
        return modes[-1] == "append"
    if call.names[-1] == "insertInto":
        return ("overwrite", True) not in call.spoken and ("insertInto", True) not in call.spoken
    return call.names[-1] == "append" or written(call) == "kafka"


def refuses_what_is_there(call: Call) -> bool:
    """Does a write fail when its place is not empty? That is Spark's default for files and tables."""
    form = written(call)
    places = _FILES | {"jdbc"} if call.names[-1] in ("save", *_FORMATS) else {form}
    if form is None or form not in places or "writeTo" in call.names or call.names[-1] == "insertInto":
        return False
    spoken = [value for method, value in call.spoken if method in ("mode", "jdbc")]
    if "mode" in call.names or any(key == "mode" for key in call.named):
        return any(str(value).lower() in ("error", "errorifexists") for value in spoken)
    return call.names[-1] != "jdbc" or len(call.given) < _JDBC_MODE


def fixed(call: Call, local: Collection[str]) -> bool:
    """Are all arguments of the last call constants, or names from outside of the function?"""
    node = call.node
    if not isinstance(node, ast.Call):
        return False
    for one in (*node.args, *_values(node)):
        for inside in ast.walk(one):
            if isinstance(inside, ast.Call) or (isinstance(inside, ast.Name) and inside.id in local):
                return False
    return True


def merges(call: Call) -> bool:
    """`table.merge(rows, condition)…execute()`."""
    return "merge" in call.names and call.names[-1] == "execute"


def constant(node: ast.expr) -> str | None:
    """The first argument of a call when it is a text, or the fixed parts of an f-string."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    first = node.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    if isinstance(first, ast.JoinedStr):
        parts = (one.value for one in first.values if isinstance(one, ast.Constant))
        return "?".join(str(part) for part in parts)
    return None


def _root(node: ast.expr) -> str:
    """The name that an argument starts from: `df` of `df.alias("s")`."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _values(call: ast.Call) -> list[ast.expr]:
    return [one.value for one in call.keywords]
