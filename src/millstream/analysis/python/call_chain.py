"""A call on a DataFrame as a chain of names: its root, its methods and its arguments."""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors import spark_formats

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

PERSIST = frozenset({"persist", "cache", "checkpoint", "localCheckpoint"})
LOG_FUNCTIONS = frozenset(
    {"print", "debug", "info", "warning", "warn", "error", "exception", "log", "critical"}
)
# Functions of Python that read what they get. `map`, `filter` and `getattr` are none: they may call a write.
READING_FUNCTIONS = frozenset({
    "all", "any", "bool", "callable", "dict", "dir", "enumerate", "float", "format", "frozenset", "hasattr",
    "hash", "id", "int", "isinstance", "issubclass", "iter", "len", "list", "max", "min", "next", "print",
    "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "vars", "zip",
})  # fmt: skip
VIEWS = frozenset({"createOrReplaceTempView", "createTempView", "registerTempTable"})
# Methods after which a DataFrame has as many rows as before.
KEEP_ALL_ROWS = PERSIST | {
    "select", "selectExpr", "withColumn", "withColumns", "withColumnRenamed", "withColumnsRenamed", "drop",
    "alias", "toDF", "orderBy", "sort", "repartition", "coalesce", "fillna", "toJSON",
}  # fmt: skip
_FORMATS = frozenset({*spark_formats.FILE_METHODS, "jdbc"})
# Spark's own file formats, and Delta; a write without a format uses Parquet.
_FILE_FORMATS = spark_formats.WRITABLE_FILES | {"", spark_formats.DELTA}
# The positions of the mode among the arguments of a write, from 0: `parquet(path, mode)`, `save(path, format, mode)`.
_MODE_POSITIONS = {name: 1 for name in spark_formats.FILE_METHODS if name not in ("text", "xml")}
_MODE_POSITIONS |= {"save": 2, "saveAsTable": 2, "jdbc": 2}
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
# Options that name the key of a row, by which Elasticsearch, OpenSearch and MongoDB replace it, or a statement of
# Neo4j, which may MERGE each row.
_KEY_OPTIONS = frozenset({"es.mapping.id", "opensearch.mapping.id", "idFieldList", "query"})
_KEYED_FORMATS = frozenset(
    {"es", "org.elasticsearch.spark.sql", "opensearch", "org.opensearch.spark.sql", "mongodb", "mongo"}
)

# Functions of clients by which collected rows are written: psycopg, pandas, Kafka, MongoDB, boto3, Elasticsearch.
_ROW_WRITES = frozenset(
    {"executemany", "execute_batch", "execute_values", "copy_expert", "to_sql", "produce", "send"}
    | {"insert_one", "insert_many", "bulk", "bulk_write", "put_object", "put_item", "put_records"}
)
_WRITING_SQL = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE|UPSERT|REPLACE|COPY)\b", re.IGNORECASE)
# Options that name the target of a write.
_TARGETS = frozenset({"dbtable", "path", "table"})


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
    def first_arguments(self) -> list[str]:
        """The names among the arguments of the first call, `""` for other expressions."""
        node, calls = self.node, []
        while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Call):
                calls.append(node)
            node = node.func if isinstance(node, ast.Call) else node.value
        return [_find_root(value) for value in calls[-1].args] if calls else []

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
    arguments = call.node.args if isinstance(call.node, ast.Call) else []
    if call.names[-1] in ("save", "saveAsTable"):
        formats += [str(node.value).lower() for node in arguments[1:2] if isinstance(node, ast.Constant)]
    return formats[-1] if formats else call.names[-1] if call.names[-1] in _FORMATS else ""


def find_glue_format(call: CallChain) -> str | None:
    """Return the kind of connection of a write of AWS Glue, empty if not given; `None` for another call."""
    if not {*_GLUE_WRITES} & {*call.names}:
        return None
    kinds = [str(value).lower() for method, value in call.spoken if method == "connection_type"]
    return kinds[-1] if kinds else ""


def is_append(call: CallChain) -> bool:
    """Return whether a write only adds rows, without recognising a repeated batch."""
    options = _IDEMPOTENT_OPTIONS | _KEY_OPTIONS
    if any(value in options for _, value in call.spoken) or options & {name for name, _ in call.spoken}:
        return False
    if "options" in call.names and find_write_format(call) in _KEYED_FORMATS:
        # The options, which are read from elsewhere, may name the key.
        return False
    mode = _find_mode(call)
    if mode:
        return mode == "append"
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
        or (call.names[-1] == "save" and _has_unknown_format(call))
    ):
        return False
    mode = _find_mode(call)
    return mode is None or mode in ("error", "errorifexists")


def _has_unknown_format(call: CallChain) -> bool:
    """Return whether a write has a format that is not a constant, such as a name."""
    node: ast.AST = call.node
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            arguments = node.args[:1] if name == "format" else node.args[1:2] if name == "save" else []
            arguments += [
                keyword.value
                for keyword in node.keywords
                if keyword.arg in ("format", "source") or (keyword.arg is None and name == "save")
            ]
            if any(not isinstance(argument, ast.Constant) for argument in arguments):
                return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def ignores_if_exists(call: CallChain) -> bool:
    """Return whether a write does nothing if its target exists. A write of no rows creates the target only."""
    return (
        find_write_format(call) is not None
        and _find_mode(call) == "ignore"
        and ("limit", 0) not in call.spoken
    )


def _find_mode(call: CallChain) -> str | None:
    """Return the mode of a write in lower case, "" if it is not a constant, `None` if the write gives none."""
    modes: list[ast.expr] = []
    node: ast.AST = call.node
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            position = 0 if name == "mode" else _MODE_POSITIONS.get(name, len(node.args))
            modes += node.args[position : position + 1]
            modes += [keyword.value for keyword in node.keywords if keyword.arg in ("mode", "saveMode")]
        node = node.func if isinstance(node, ast.Call) else node.value
    if not modes:
        return None
    return str(modes[0].value).lower() if isinstance(modes[0], ast.Constant) else ""


def has_fixed_target(call: CallChain, local: Collection[str]) -> bool:
    """Return whether what names the target of a write are constants, or names from outside the function.

    These are the arguments of the last call, and the options that name a table or a folder.
    """
    node: ast.AST = call.node
    arguments = [*node.args, *_list_keyword_values(node)] if isinstance(node, ast.Call) else []
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call):
            is_option = isinstance(node.func, ast.Attribute) and node.func.attr == "option" and node.args
            if is_option and isinstance(node.args[0], ast.Constant) and node.args[0].value in _TARGETS:
                arguments += node.args[1:]
            arguments += [keyword.value for keyword in node.keywords if keyword.arg in _TARGETS]
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(call.node, ast.Call) and not any(_changes(argument, local) for argument in arguments)


def find_changing_parameters(parameters: Sequence[str], call: CallChain, local: Collection[str]) -> set[str]:
    """Return the parameters of a function that a call gives anything but constants and names from outside."""
    if not isinstance(call.node, ast.Call):
        return set(parameters)
    arguments_by_name = dict(zip(parameters, call.node.args, strict=False))
    arguments_by_name |= {keyword.arg: keyword.value for keyword in call.node.keywords if keyword.arg}
    return {name for name, value in arguments_by_name.items() if _changes(value, local)}


def bind_literals(function: ast.FunctionDef, call: CallChain) -> ast.FunctionDef:
    """Return a function with the literals that a call, or a default, gives its parameters in place of their names."""
    node, parameters = call.node, function.args
    if not isinstance(node, ast.Call) or any(isinstance(value, ast.Starred) for value in node.args):
        return function
    names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    values = dict(zip(reversed(names), reversed(parameters.defaults), strict=False))
    values |= {
        parameter.arg: default
        for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if default is not None
    }
    values |= dict(zip(names, node.args, strict=False))
    values |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    literals = {name: value for name, value in values.items() if isinstance(value, ast.Constant)}
    inside = [inner for statement in function.body for inner in ast.walk(statement)]
    stored = {
        inner.id for inner in inside if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    } | {inner.arg for inner in inside if isinstance(inner, ast.arg)}
    if any(keyword.arg is None for keyword in node.keywords) or literals.keys() <= stored:
        return function
    binding = _Literals({name: value for name, value in literals.items() if name not in stored})
    bound: ast.FunctionDef = binding.visit(copy.deepcopy(function))
    return bound


@dataclass(frozen=True)
class _Literals(ast.NodeTransformer):
    values: Mapping[str, ast.Constant]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        literal = self.values.get(node.id)
        return node if literal is None else ast.copy_location(ast.Constant(literal.value), node)


def _changes(value: ast.expr, local: Collection[str]) -> bool:
    """Return whether an expression may have another value in each batch: it calls something, or has local names."""
    return any(
        isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in local)
        for node in ast.walk(value)
    )


def is_merge(call: CallChain) -> bool:
    """Return whether the call is a merge: `table.merge(rows, condition)…execute()`."""
    return "merge" in call.names and call.names[-1] == "execute"


def writes_rows(call: CallChain) -> bool:
    """Return whether a call writes rows: one of a client's library, or a write of a new DataFrame of them."""
    name = call.names[-1] if call.names else call.root
    if "createDataFrame" in call.names and find_write_format(call) is not None:
        return True
    text = get_string_argument(call.node) or ""
    # `insert` of PyMongo before version 4; that of a list has a position too.
    is_insert = name == "insert" and isinstance(call.node, ast.Call) and len(call.node.args) == 1
    return is_insert or name in _ROW_WRITES or (name == "execute" and _WRITING_SQL.match(text) is not None)


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
