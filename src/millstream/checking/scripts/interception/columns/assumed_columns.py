"""Learn the unknown columns of a source from the names by which a script uses them."""

from __future__ import annotations

import ast
import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.columns.exploded_arrays import find_exploded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pyspark.sql.types import DataType

PLACEHOLDER = "columns_not_known_in_a_check"
"""The column of a frame used in place of one with unknown columns. No code of a user names it."""

TEXT = "STRING"
"""The type of a column of which only the name is known. Spark casts it to most others."""

# A type in an error of Spark.
_QUOTED_TYPE = re.compile(r'"([^"]+)"')

# A column whose fields are read. A map has every field.
_NESTED = "MAP<STRING, STRING>"
_DEEPEST = 4
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`|\"?([A-Za-z_]\w*)\"?")

# Functions that need no parentheses, and that are more often the name of a column.
_FUNCTIONS = re.compile(r"(?<![\w.`'\"])(user|session_user)(?![\w`'\"]|\s*\()", re.IGNORECASE)

# How Spark prints an operator of a plan, the columns that it lacks, those that it computes, and conditions.
_OPERATOR = re.compile(r"^.*?(?=[\[(])")
_LACKING = re.compile(r"'([A-Za-z_]\w*)(?![\w.]|\s*[(\[])")
_DEFINED = re.compile(r"\bAS (\w+)#")
_CONDITION = re.compile(r"\bWHEN '(\w+) THEN\b")

# Types that a function may ask for, each with the type that its column gets.
_TYPES = (
    ("TIMESTAMP", "TIMESTAMP"),
    ("ARRAY", "ARRAY<STRING>"),
    ("MAP", _NESTED),
    ("BINARY", "BINARY"),
    ("BOOLEAN", "BOOLEAN"),
    ("NUMERIC", "DOUBLE"),
    ("DOUBLE", "DOUBLE"),
    ("INTEGRAL", "BIGINT"),
    ("BIGINT", "BIGINT"),
    ("INT", "INT"),
    ("DATE", "DATE"),
)

_AVRO_TYPES = {
    "STRING": "string",
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "DATE": {"type": "int", "logicalType": "date"},
    "ARRAY<STRING>": {"type": "array", "items": ["null", "string"]},
    "BINARY": "bytes",
    "BOOLEAN": "boolean",
    "DOUBLE": "double",
    "BIGINT": "long",
    "INT": "int",
}

# Functions of Databricks that Spark does not have.
_DATABRICKS_FUNCTIONS = re.compile(
    r"(?:ai|h3|st|try_h3|try_st)_\w+|vector_search|http_request|remote_query|(?:try_)?secret|is_member"
    r"|is_account_group_member|cloud_files_state"
)

# Methods whose text arguments are names of columns.
_NAMING = frozenset(
    {"select", "groupBy", "groupby", "orderBy", "sort", "dropDuplicates", "dropDuplicatesWithinWatermark", "rollup"}
)  # fmt: skip
# What a frame has besides its columns, and how near a name must be to one of them to be that one, misspelt.
_FRAME_METHODS = sorted(name for name in dir(DataFrame) if not name.startswith("_"))
_MISSPELT = 0.85
# Calls whose first argument is the name of a new column.
_DEFINING = frozenset({"alias", "withColumn", "withColumnRenamed", "name"})


class AssumedColumns:
    """The columns of unknown sources that a script names, with types that its operations accept."""

    def __init__(self) -> None:
        self._types: dict[str, dict[str, str]] = {}
        self._aliases: dict[str, set[str]] = {}
        self._of_others: set[tuple[str, str]] = set()
        """Sources and names that they do not have, because another source of the same query has them."""
        self._origins: dict[str, set[str]] = {}
        self.functions: set[str] = set()
        """Functions of Databricks that the script calls."""
        self.has_grown = False
        """True if a further run of the script knows more than this one."""

    def __contains__(self, source: str) -> bool:
        """Return whether any column of a source is assumed."""
        return bool(self._types.get(source))

    def alias(self, name: str, sources: Collection[str]) -> None:
        """Note a name that the script gives to a frame of some sources. Columns are qualified with it."""
        self._aliases.setdefault(name.lower(), set()).update(sources)

    def note_origins(self, source: str, origins: Collection[str]) -> None:
        """Note the sources from which a flow writes a table. Their columns have the types that the table's have."""
        self._origins.setdefault(source, set()).update(origins)

    def ddl(self, source: str, written: StructType | None = None) -> str:
        """Return the columns of a source as DDL, with a comma before each. `written` are those that it has anyway."""
        types = {} if written is None else {field.name: _ddl(field.dataType) for field in written.fields}
        own = {name.lower() for name in types} | {PLACEHOLDER}
        types |= {name: kind for name, kind in self._types.get(source, {}).items() if name.lower() not in own}
        return "".join(f", `{name}` {kind}" for name, kind in types.items() if name != PLACEHOLDER)

    def types(self, source: str) -> dict[str, str]:
        """Return the types of a source's columns, by name."""
        return dict(self._types.get(source, {}))

    def avro(self, source: str) -> str:
        """Return the columns of a message as a schema of Avro."""
        types = {PLACEHOLDER: TEXT, **self._types.get(source, {})}
        fields = [{"name": name, "type": ["null", _avro_type(kind)]} for name, kind in types.items()]
        return json.dumps({"type": "record", "name": "message", "fields": fields})

    def add(self, sources: Collection[str], names: Collection[str], kind: str = TEXT) -> None:
        """Assume that the first of some sources has columns of these names."""
        known = {name.lower() for source in sources for name in self._types.get(source, {})}
        for name in names:
            own = next((source for source in sources if (source, name.lower()) not in self._of_others), None)
            if own is not None and name.lower() not in known and MARK not in name:
                self._types.setdefault(own, {})[name] = kind
                known.add(name.lower())
                self.has_grown = True

    def add_names_of_functions(self, sources: Collection[str], text: str) -> None:
        """Assume the columns of an SQL text that Spark would take for functions, such as `user`."""
        self.add(sources, sorted({name.lower() for name in _FUNCTIONS.findall(text)}))

    def learn(self, sources: Collection[str], error: BaseException) -> bool:
        """Learn from an error that Spark raises because of a column's name or type. Returns whether it says more."""
        before, self.has_grown = self.has_grown, False
        if isinstance(error, PySparkException) and sources:
            self._learn(sources, error)
        is_new, self.has_grown = self.has_grown, self.has_grown or before
        return is_new

    def _learn(self, sources: Collection[str], error: PySparkException) -> None:
        condition, facts = str(error.getCondition() or ""), error.getMessageParameters() or {}
        if (function := missing_function(error)) and function not in self.functions:
            self.functions.add(function)
            self.has_grown = True
        if condition.startswith("UNRESOLVED_COLUMN"):
            parts = _parts(facts.get("objectName") or facts.get("colName", ""))
            if len(parts) > 1 and parts[0].lower() in self._aliases:
                own = self._aliases[parts[0].lower()]
                parts, sources = parts[1:], [source for source in sources if source in own]
            if parts:
                lacking, conditions = _names_in_plan(str(error), parts[0])
                is_only_source = len(sources) == 1
                self.add(sources if is_only_source else (), sorted(conditions), "BOOLEAN")
                kind = TEXT if len(parts) == 1 else _NESTED
                self.add(self._list_lacking(sources, parts[0]), parts[:1], kind)
                self.add(sources, sorted(_names_in_statement() | (lacking if is_only_source else set())))
        elif condition.startswith("AMBIGUOUS_REFERENCE"):
            self._take_back(sources, _parts(facts.get("name", "")))
        elif condition.startswith("UNRESOLVED_USING_COLUMN"):
            # The sources of an SQL text do not have the order of its joins: the next one is tried if one has it.
            sides = list(sources) if facts.get("side") == "left" else list(sources)[::-1]
            for name in _parts(facts.get("colName", ""))[:1]:
                self.add(self._list_lacking(sides, name), [name])
        elif condition == "ATTRIBUTE_NOT_SUPPORTED":
            name = facts.get("attr_name", "")
            if not get_close_matches(name, _FRAME_METHODS, n=1, cutoff=_MISSPELT):
                self.add(sources, [name])
        elif condition == "KEY_NOT_EXISTS":
            # The script looks the column up in the schema.
            self.add(sources, [name] if _NAME.fullmatch(name := facts.get("key", "")) else [])
        elif condition.startswith("FIELD_NOT_FOUND"):
            self._add_field(sources, _parts(facts.get("fieldName", "")), _parts(facts.get("fields", "")))
        elif condition.startswith("DATATYPE_MISMATCH.CAST"):
            self._take_type(sources, facts.get("sqlExpr", ""), facts.get("targetType", ""))
        elif condition.startswith("DATATYPE_MISMATCH"):
            required = facts.get("requiredType", "BOOLEAN" if "FILTER" in condition else "")
            others = " ".join(facts.get(key, "") for key in ("inputType", "dataType", "left", "right"))
            names = facts.get("inputSql", facts.get("filter", "")) or facts.get("sqlExpr", "")
            self._retype(sources, names, f"{required or others}".upper(), _find_combined_type(facts))
        elif condition.startswith("EVENT_TIME_IS_NOT"):
            self._retype(sources, facts.get("eventName", ""), "TIMESTAMP")
        elif condition.startswith("INVALID_EXTRACT_BASE"):
            self._deepen(sources, facts.get("base", ""))

    def _add_field(self, sources: Collection[str], name: list[str], fields: list[str]) -> None:
        """Add a field to the source that lacks it: the one with these fields, if several sources lack it."""
        lacking = self._list_lacking(sources, name[0]) if name else []
        others = {field.lower() for field in fields} - {PLACEHOLDER}
        own = [
            source for source in lacking if others == {known.lower() for known in self._types.get(source, {})}
        ]
        self.add(own or lacking, name[:1])

    def _list_lacking(self, sources: Collection[str], name: str) -> list[str]:
        """Return the sources that do not have a column yet. Spark misses it although another one may have it."""
        return [
            source
            for source in sources
            if name.lower() not in {known.lower() for known in self._types.get(source, {})}
        ]

    def _take_type(self, sources: Collection[str], name: str, kind: str) -> None:
        """Give a column the type to which Spark does not cast a text. A column of this type can be cast to it."""
        for source in sources if kind else ():
            columns = self._types.get(source, {})
            for known in [known for known in columns if known.lower() == name.strip('"').lower()]:
                if columns[known] == TEXT:
                    columns[known] = kind.strip('"')
                    self.has_grown = True

    def _take_back(self, sources: Collection[str], parts: list[str]) -> None:
        """Take back the column that two sources have, from the first that has it by assumption only."""
        for source in sources if len(parts) == 1 else ():
            columns = self._types.get(source, {})
            for name in [name for name in columns if name.lower() == parts[0].lower()]:
                del columns[name]
                self._of_others.add((source, name.lower()))
                self.has_grown = True
                return

    def _list_origins(self, sources: Collection[str]) -> list[str]:
        """Return the sources, and those from which flows write them."""
        origins = list(sources)
        for source in origins:
            origins += [origin for origin in sorted(self._origins.get(source, ())) if origin not in origins]
        return origins

    def _retype(self, sources: Collection[str], names: str, required: str, new_type: str = "") -> None:
        """Change the types of the columns that an error names. The innermost part of a map has its type.

        The type is `new_type`, or the one for the words of `required`.
        """
        kind = new_type or next((kind for word, kind in _TYPES if word in required), None)
        words = {word.lower() for word in re.findall(r"\w+", names)}
        for source in self._list_origins(sources) if kind else ():
            columns = self._types.get(source, {})
            for known, before in columns.items():
                is_map = before.startswith("MAP") and kind != _NESTED
                if (
                    known.lower() in words
                    and (before == TEXT or is_map)
                    and before.endswith((TEXT, f"{TEXT}>"))
                ):
                    head, _, tail = before.rpartition(TEXT)
                    columns[known] = f"{head}{kind}{tail}"
                    self.has_grown = True

    def _deepen(self, sources: Collection[str], base: str) -> None:
        """Give fields to the column that an error names, `a`, `a.b` or `a[b]`, or to the elements of its array."""
        parts = re.findall(r"\w+", base)
        roots = {part.lower() for part in parts[:1]}
        arrays = {name.lower() for root in roots for name in find_exploded(root)}
        for source in self._list_origins(sources):
            columns = self._types.get(source, {})
            for known, kind in columns.items():
                is_named = known.lower() in roots or (known.lower() in arrays and "ARRAY<" in kind)
                # Another query of the same run may have given it these fields.
                fields = kind.rpartition("ARRAY<")[2].count("MAP")
                if is_named and fields < min(len(parts), _DEEPEST) and TEXT in kind:
                    head, _, tail = kind.rpartition(TEXT)
                    columns[known] = f"{head}{_NESTED}{tail}"
                    self.has_grown = True


def _find_combined_type(facts: Mapping[str, str]) -> str:
    """Return the array or struct that an operation combines with a text; "" if there is none, or several."""
    texts = (facts.get(key, "") for key in ("dataType", "left", "right", "leftType", "rightType"))
    kinds = {kind.replace(" NOT NULL", "") for kind in _QUOTED_TYPE.findall(" ".join(texts))}
    others = [kind for kind in kinds if kind.startswith(("ARRAY<", "STRUCT<"))]
    return others[0] if len(others) == 1 and kinds == {TEXT, *others} else ""


def missing_function(error: BaseException) -> str:
    """Return the function of Databricks that Spark does not know; "" if it misses another one, or none."""
    if not isinstance(error, PySparkException) or error.getCondition() != "UNRESOLVED_ROUTINE":
        return ""
    name = (error.getMessageParameters() or {}).get("routineName", "").replace("`", "").lower()
    return name if _DATABRICKS_FUNCTIONS.fullmatch(name) else ""


def _ddl(kind: DataType) -> str:
    """Return the DDL of a type. Names of fields have quotes if they need them, which `simpleString` leaves out."""
    return StructType([StructField("c", kind)]).toDDL().removeprefix("c ")


def _avro_type(kind: str) -> Any:
    """Return a type of Spark as one of Avro."""
    if kind.startswith("MAP<STRING, "):
        inner = kind.removeprefix("MAP<STRING, ").removesuffix(">")
        return {"type": "map", "values": ["null", _avro_type(inner)]}
    return _AVRO_TYPES.get(kind, "string")


def _parts(name: str) -> list[str]:
    """Return the parts of a column's name in an error: `a`.`b`, or "a"."""
    return [first.replace("``", "`") or second for first, second in _QUOTED.findall(name)]


def _names_in_plan(message: str, missing: str) -> tuple[set[str], set[str]]:
    """Return the columns that the operator of a missing one lacks too, and those of them that are conditions.

    Spark names one column in its error, and adds the plan, in which each name without a column has a quote.
    """
    names: set[str] = set()
    conditions: set[str] = set()
    for line in message.splitlines():
        operator = _OPERATOR.sub("", line)
        if f"'{missing}" in operator:
            new = set(_DEFINED.findall(operator))
            names |= set(_LACKING.findall(operator)) - new
            conditions |= set(_CONDITION.findall(operator)) - new
    return names, conditions & names


def _names_in_statement() -> set[str]:
    """Return the columns that the user's current statement reads by name."""
    frame = call_sites.find_user_frame()
    statement = None if frame is None else call_sites.find_statement(frame, frame.f_lineno)
    if statement is None:
        return set()
    calls = [node for node in ast.walk(statement[0]) if isinstance(node, ast.Call)]
    new = {name for call in calls if _function(call) in _DEFINING for name in _texts(call.args[:1])}
    read = {name for call in calls if _function(call) in ("col", "column") for name in _texts(call.args[:1])}
    read |= {name for call in calls if _function(call) in _NAMING for name in _texts(call.args)}
    return read - new


def _function(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _texts(arguments: list[ast.expr]) -> Iterator[str]:
    """Yield the names among arguments, and among the elements of their lists."""
    for argument in arguments:
        if isinstance(argument, ast.List | ast.Tuple):
            yield from _texts(argument.elts)
        elif isinstance(argument, ast.Constant) and _NAME.fullmatch(str(argument.value)):
            yield str(argument.value)
