"""A call on a DataFrame as a chain of names: its root, its methods and its arguments."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors import spark_formats

if TYPE_CHECKING:
    from collections.abc import Collection

PERSIST = frozenset({"persist", "cache", "checkpoint", "localCheckpoint"})
LOG_FUNCTIONS = frozenset(
    {"print", "debug", "info", "warning", "warn", "error", "exception", "log", "critical"}
)
VIEWS = frozenset({"createOrReplaceTempView", "createTempView", "registerTempTable"})
# Methods after which a DataFrame has as many rows as before.
KEEP_ALL_ROWS = PERSIST | {
    "select", "selectExpr", "withColumn", "withColumns", "withColumnRenamed", "withColumnsRenamed", "drop",
    "alias", "toDF", "orderBy", "sort", "repartition", "coalesce", "fillna",
}  # fmt: skip
_FORMATS = frozenset({*spark_formats.FILE_METHODS, "jdbc"})
# Spark's own file formats, and Delta; a write without a format uses Parquet.
_FILE_FORMATS = spark_formats.WRITABLE_FILES | {"", spark_formats.DELTA}
# The position of the mode among the arguments of `jdbc`: url, table, mode, properties.
_JDBC_MODE_POSITION = 3
_WRITE_METHODS = _FORMATS | {
    "save",
    "saveAsTable",
    "insertInto",
    "append",
    "overwrite",
    "overwritePartitions",
}
_WRITE_METHODS |= {"create", "createOrReplace", "replace"}
# Methods by which AWS Glue writes a frame, and those by which it makes one of Spark's.
_GLUE_WRITES = (
    "write_dynamic_frame", "write_dynamic_frame_from_options", "write_dynamic_frame_from_catalog",
    "write_dynamic_frame_from_jdbc_conf", "write_data_frame", "write_data_frame_from_options", "writeFrame",
)  # fmt: skip
GLUE_CONVERSIONS = frozenset({"fromDF", "apply", "toDF"})
_ACTIONS = frozenset({"collect", "toPandas", "toArrow", "toLocalIterator", "foreach", "foreachPartition"})
_GROUP_METHODS = frozenset({"groupBy", "groupby", "rollup", "cube"})
# Options with the batch id of a write: Delta skips a batch that it already has.
_IDEMPOTENT_OPTIONS = frozenset({"txnAppId", "txnVersion"})


@dataclass(frozen=True)
class CallChain:
    """`df.write.mode("append").save(path)`: root `df`, names write, mode, save.

    `positional` are the names among the arguments of all calls, by position, `""` for other expressions. `keywords`
    are the keyword arguments of the last call. `spoken` are the constants: (method, argument).
    """

    node: ast.expr
    root: str
    names: tuple[str, ...]
    positional: tuple[str, ...]
    keywords: dict[str, str]
    spoken: tuple[tuple[str, object], ...]

    @classmethod
    def of(cls, node: ast.expr) -> CallChain:
        """Build the chain of an expression; the root is empty if the expression does not begin with a name."""
        names: list[str] = []
        calls: list[tuple[str, ast.Call]] = []
        current = node
        while isinstance(current, ast.Call | ast.Attribute | ast.Subscript):
            if isinstance(current, ast.Call):
                function = current.func
                calls.append((function.attr if isinstance(function, ast.Attribute) else "", current))
                current = function
            elif isinstance(current, ast.Attribute):
                names.append(current.attr)
                current = current.value
            else:
                current = current.value
        root = current.id if isinstance(current, ast.Name) else ""
        arguments = [
            _find_root(node_item)
            for _, call in reversed(calls)
            for node_item in (*call.args, *_list_keyword_values(call))
        ]
        keywords = node.keywords if isinstance(node, ast.Call) else []
        keyword_arguments = {
            node_item.arg: _find_root(node_item.value) for node_item in keywords if node_item.arg
        }
        constants = [
            (name if key is None else key, node_item.value)
            for name, call in reversed(calls)
            for key, node_item in ((None, arg) for arg in call.args)
            if isinstance(node_item, ast.Constant)
        ]
        constants += [
            (node_item.arg or "", node_item.value.value)
            for _, call in calls
            for node_item in call.keywords
            if isinstance(node_item.value, ast.Constant)
        ]
        return cls(node, root, tuple(reversed(names)), tuple(arguments), keyword_arguments, tuple(constants))

    @property
    def executes(self) -> bool:
        """Return whether the call processes every row of the DataFrame at its root."""
        if not self.names or not isinstance(self.node, ast.Call):
            return False
        method = self.names[-1]
        if method == "count":
            return len(self.names) < 2 or self.names[-2] not in _GROUP_METHODS
        return method in _ACTIONS or find_write_format(self) is not None


def find_write_format(call: CallChain) -> str | None:
    """Return the format of a write, empty if not given; `None` for a call that is not a write."""
    if not {"write", "writeTo"} & {*call.names[:-1]} or call.names[-1] not in _WRITE_METHODS:
        return None
    formats = [str(value).lower() for method, value in call.spoken if method == "format"]
    return formats[-1] if formats else call.names[-1] if call.names[-1] in _FORMATS else ""


def find_glue_format(call: CallChain) -> str | None:
    """Return the kind of connection of a write of AWS Glue, empty if not given; `None` for another call."""
    if not {*_GLUE_WRITES} & {*call.names}:
        return None
    kinds = [str(value).lower() for method, value in call.spoken if method == "connection_type"]
    return kinds[-1] if kinds else ""


def is_append(call: CallChain) -> bool:
    """Return whether a write only adds rows, without recognising a repeated batch."""
    if any(value in _IDEMPOTENT_OPTIONS for _, value in call.spoken) or _IDEMPOTENT_OPTIONS & {
        name for name, _ in call.spoken
    }:
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
    return call.names[-1] == "append" or find_write_format(call) == spark_formats.KAFKA


def fails_if_exists(call: CallChain) -> bool:
    """Return whether a write fails if its target exists, which is Spark's default for files and tables."""
    format_name = find_write_format(call)
    refusing_formats = _FILE_FORMATS | {"jdbc"} if call.names[-1] in ("save", *_FORMATS) else {format_name}
    if (
        format_name is None
        or format_name not in refusing_formats
        or "writeTo" in call.names
        or call.names[-1] == "insertInto"
    ):
        return False
    modes = [value for method, value in call.spoken if method in ("mode", "jdbc")]
    if "mode" in call.names or any(key == "mode" for key in call.keywords):
        return any(str(value).lower() in ("error", "errorifexists") for value in modes)
    return call.names[-1] != "jdbc" or len(call.positional) < _JDBC_MODE_POSITION


def has_fixed_arguments(call: CallChain, local: Collection[str]) -> bool:
    """Return whether all arguments of the last call are constants, or names from outside the function."""
    node = call.node
    if not isinstance(node, ast.Call):
        return False
    for argument in (*node.args, *_list_keyword_values(node)):
        for child in ast.walk(argument):
            if isinstance(child, ast.Call) or (isinstance(child, ast.Name) and child.id in local):
                return False
    return True


def is_merge(call: CallChain) -> bool:
    """Return whether the call is a merge: `table.merge(rows, condition)…execute()`."""
    return "merge" in call.names and call.names[-1] == "execute"


def get_string_argument(node: ast.expr) -> str | None:
    """Return the first argument of a call if it is a string, or the constant parts of an f-string."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    first = node.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    if isinstance(first, ast.JoinedStr):
        parts = (part.value for part in first.values if isinstance(part, ast.Constant))
        return "?".join(str(text) for text in parts)
    return None


def _find_root(node: ast.expr) -> str:
    """Return the name with which an argument begins: `df` of `df.alias("s")`."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _list_keyword_values(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords]
