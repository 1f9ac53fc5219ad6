"""Replace `spark.sql` during a check: analyse queries, and do not run commands that change something."""

from __future__ import annotations

import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.sql_formatter import SQLStringFormatter

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.placeholders import Unknown, is_frame
from millstream.checking.scripts.interception.recording import Doubt
from millstream.checking.scripts.interception.spark_formats import FILES, short_name
from millstream.checking.scripts.sql_text import find_aliases, with_view, without_reader
from millstream.connectors import spark_formats
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.readers import ReaderPatch
    from millstream.checking.scripts.interception.recording import Recording

# Statements that Spark accepts only in a declarative pipeline. Spark's own error says so.
_PIPELINE_STATEMENTS = ("CreateStreamingTable", "CreateMaterializedView", "CreateFlowCommand")

# Statements of Unity Catalog, and others of Databricks that Spark's parser does not know.
_DATABRICKS = re.compile(
    r"""\s*(?:
    (?:USE|CREATE|ALTER|DROP|DESCRIBE|DESC|SHOW|COMMENT\s+ON|SET)\s+(?:OR\s+REPLACE\s+)?(?:FOREIGN\s+|EXTERNAL\s+)?
    (?:CATALOGS?|VOLUMES?|LOCATIONS?|STORAGE\s+CREDENTIALS?|CONNECTIONS?|SHARES?|RECIPIENTS?|PROVIDERS?|GRANTS?)
    |CREATE\s+OR\s+REFRESH|CREATE\s+(?:STREAMING\s+)?LIVE
    |GRANT|REVOKE|OPTIMIZE|VACUUM|RESTORE|FSCK|COPY\s+INTO|CONVERT\s+TO\s+DELTA|UNDROP|SYNC
    |ALTER\s+\w+\s+\S+\s+(?:(?:UN)?SET\s+TAGS|(?:SET\s+)?OWNER\s+TO|CLUSTER\s+BY)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)

# Functions of Databricks that read files and topics in SQL, each with whether it reads a stream by itself.
DATABRICKS_READERS = {
    "cloud_files": True, "read_files": False, "read_kafka": False, "read_kinesis": False, "read_pulsar": False,
    "read_pubsub": False, "read_statestore": False, "event_log": False, "table_changes": False,
}  # fmt: skip
_DECLARES_STREAM = re.compile(r"\s*CREATE\s+(?:STREAMING|FLOW)\b", re.IGNORECASE)

# Methods of the catalog that change it or its session, or refer to a table that only the script's catalog has.
_CATALOG_COMMANDS = (
    "analyzeTable", "cacheTable", "createDatabase", "createExternalTable", "createTable", "dropDatabase",
    "dropTable", "dropView", "recoverPartitions", "refreshTable", "setCurrentCatalog", "setCurrentDatabase",
    "truncateTable", "uncacheTable",
)  # fmt: skip
_CATALOG_QUERIES = ("getDatabase", "getFunction", "getTable", "listColumns", "listFunctions", "listTables")


class Statements:
    """Replaces `spark.sql` and `spark.table`."""

    def __init__(self, recording: Recording, reading: ReaderPatch) -> None:
        self.recording = recording
        self.reading = reading
        self.texts: dict[str, call_sites.SqlText] = {}
        """The user's original SQL, by the SQL text that Spark received."""

    def install(self, patches: Patches) -> None:
        """Replace the methods of the session and the catalog."""
        patches.wrap(SparkSession, "sql", self._sql)
        patches.wrap(SparkSession, "table", self._table)
        patches.wrap(Catalog, "tableExists", self._exists)
        for method in _CATALOG_COMMANDS:
            patches.set(Catalog, method, lambda *_args, **_kwargs: None)
        for method in _CATALOG_QUERIES:
            patches.wrap(Catalog, method, self._ask_catalog)

    def _table(self, original: Any, session: SparkSession, name: str) -> Any:
        return self.reading.table(session, name, streaming=False, original=lambda: original(session, name))

    def _exists(self, original: Any, catalog: Catalog, name: str, *more: Any) -> bool:
        key = name.replace("`", "").lower()
        return key in self.recording.list_known_tables() or original(catalog, name, *more)

    def _ask_catalog(self, original: Any, catalog: Catalog, *args: Any, **kwargs: Any) -> Any:
        """Return what the catalog says, or a stand-in if only the script's own catalog knows it."""
        try:
            return original(catalog, *args, **kwargs)
        except PySparkException:
            reason = "the script's catalog is not that of the check"
            return Absent(Doubt("an entry of the catalog", reason, call_sites.current_span()))

    def _sql(self, original: Any, session: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803
        unknown = next(
            (argument for argument in kwargs.values() if isinstance(argument, Unknown | Absent)), None
        )
        if unknown is not None:
            return Unknown(unknown.doubt, self.recording, streaming=getattr(unknown, "isStreaming", False))
        span = call_sites.current_span()
        formatter = SQLStringFormatter(session)
        try:
            text = formatter.format(sqlQuery, **kwargs) if kwargs else sqlQuery
            if span is not None:
                self.texts[text] = call_sites.SqlText(span, text)
            return self._run_checked(original, session, text, args)
        finally:
            formatter.clear()

    def _run_checked(self, original: Any, session: Any, text: str, args: Any) -> Any:
        try:
            plan = internals.parse_plan(session, text)
        except PySparkException:
            if is_databricks_command(text):
                return self._no_command()
            # The original call raises the same error.
            return original(session, text, args)
        kind = str(plan.getClass().getSimpleName())
        if kind in ("CreateViewCommand", "CreateView"):
            return self._view(original, session, text, args, plan)
        if kind == "SetCommand" or kind.startswith(_PIPELINE_STATEMENTS):
            return original(session, text, args)
        # Delta's statements about a table are no commands to Spark: DESCRIBE HISTORY, DESCRIBE DETAIL.
        if _is_command(session, plan) or kind.startswith("DescribeDelta"):
            self._record_table(session, kind, plan)
            if self.recording.execution is not None:
                self.recording.execution.skip(f"the SQL command in '{' '.join(text.split())[:60]}'")
            return self._no_command()
        text, unknown = self.prepare_query(session, text, plan, lambda sql: original(session, sql, args))
        return original(session, text, args) if unknown is None else unknown

    def prepare_query(
        self,
        session: Any,
        text: str,
        plan: Any,
        run: Callable[[str], Any] | None = None,
        creates: str = "",
    ) -> tuple[str, Unknown | None]:
        """Create temporary views for the tables that a parsed query reads, and return the text that uses them.

        A name with a dot is replaced by a view's name of the same width, so that Spark's positions stay correct.
        The second value is not None if the columns of a table that the query reads are not known. `run` returns the
        frame of a text, to find out whether the query depends on those columns. `creates` is the view that the
        statement creates.
        """
        streams, original_text = False, text
        doubt: Doubt | None = None
        probes: dict[str, Unknown | None] = {}
        cte_names, relations = _cte_names(plan), find_relations(plan)
        names = [name for name, _ in relations]
        # Spark stores the text of a view that the script creates, so the name in it must not become another table.
        recorded = self.recording.list_known_tables()
        taken = {name.lower() for name in (creates, *cte_names, *recorded, *names) if "." not in name}
        for name, streaming in relations:
            streams = streams or streaming
            if name.lower() in DATABRICKS_READERS:
                streams = streams or _DECLARES_STREAM.match(text) is not None
                reason = "its columns are unknown, because a check does not connect to it"
                place = re.search(rf"\b{name}\s*\(\s*['\"]([^'\"]*)", text, re.IGNORECASE)
                what = f"what {name}({place[1] if place else '…'}) reads"
                known = self.recording.doubt(Doubt(what, reason, call_sites.current_span()))
                unknown = self.reading.unknown_table(session, what, known, streaming=streams)
                doubt = doubt or unknown.doubt
                text, views = without_reader(text, name, len(probes))
                probes |= dict.fromkeys(views or [name], unknown if views else None)
                continue
            frame = None if name.lower() in cte_names else self._frame(session, name, streaming=streaming)
            # A temporary view of a pipeline may be a stream.
            streams = streams or (frame is not None and is_frame(frame) and bool(frame.isStreaming))
            if frame is None:
                continue
            view = self.reading.views.choose(name, taken, partial(internals.find_temporary_view, session))
            taken.add(view.lower())
            if isinstance(frame, Unknown | Absent):
                doubt, probes[view] = doubt or frame.doubt, frame if type(frame) is Unknown else None
            else:
                frame.createOrReplaceTempView(view)
                self.reading.views.note(view, name, internals.find_temporary_view(session, view))
            text = with_view(text, name, view, (*names, *cte_names))
        if original_text in self.texts:
            self.texts[text] = self.texts[original_text]
        if doubt is None:
            return text, None
        frames = [frame for frame in probes.values() if frame is not None]
        if len(frames) < len(probes) or run is None:
            return text, Unknown(doubt, self.recording, streaming=streams)
        if self.recording.assumed is not None:
            self.recording.assumed.add_names_of_functions(frames[0].sources, text)
            for view, frame in probes.items():
                for alias in (view, *find_aliases(text, view)):
                    self.recording.assumed.alias(alias, frame.sources if frame is not None else ())
        unknown = frames[0].with_probe(lambda _frame: _run_over(probes, text, run), *frames[1:])
        unknown.isStreaming = unknown.isStreaming or streams
        return text, unknown

    def _frame(self, session: Any, name: str, *, streaming: bool) -> Any:
        """Return the frame for a name, or None for a view of the session."""
        dataset = self.reading.read_dataset(session, name, streaming)
        if dataset is not None:
            return dataset
        kind, _, path = name.partition(".")
        if path and short_name(kind) in (*FILES, spark_formats.DELTA) and "/" in path:
            return session.read.format(kind).load(path)
        if name.lower() in self.recording.unknown:
            return self.recording.unknown[name.lower()]
        schema = self.recording.columns_of(name)
        if self.reading.has_table(session, name):
            return None
        if schema is not None:
            return self.reading.empty_table(session, name, schema, streaming=streaming)
        reason = "its columns are unknown, because a check does not connect to it"
        doubt = Doubt(
            f"table {name}", reason, call_sites.current_span(), f"pass the columns: --table '{name}=DDL'"
        )
        return self.reading.unknown_table(session, name, self.recording.doubt(doubt), streaming=streaming)

    def _view(self, original: Any, session: Any, text: str, args: Any, plan: Any) -> Any:
        """Create a view in this session, or record it as unknown if it reads an unknown table."""
        is_temporary = plan.getClass().getSimpleName() == "CreateViewCommand"
        inner = plan.plan() if is_temporary else plan.query()
        name = str(plan.name().unquotedString()) if is_temporary else _identifier(plan.child())
        text, unknown = self.prepare_query(
            session,
            text,
            inner,
            (lambda sql: _view_of(original, session, sql, args, name)) if is_temporary else None,
            name,
        )
        if unknown is not None and name:
            self.recording.unknown[name.lower()] = unknown
        elif is_temporary:
            return original(session, text, args)
        return self._no_result()

    def _record_table(self, session: Any, kind: str, plan: Any) -> None:
        """Record the columns of a table that the script creates."""
        with contextlib.suppress(Exception):
            is_table = kind.startswith(("CreateTable", "ReplaceTable"))
            parts = plan.name().nameParts() if is_table else None
            if parts is None:
                return
            name = ".".join(parts.apply(index) for index in range(parts.size())).lower()
            provider = plan.tableSpec().provider()
            if provider.isDefined():
                self.recording.providers[name] = short_name(str(provider.get()))
            if not kind.endswith("AsSelect"):
                schema = session._parse_ddl(plan.tableSchema().toDDL())
                if schema.fields:
                    # Without columns, a table has those of the files at its location.
                    self.recording.tables[name] = schema
            else:
                self.recording.tables[name] = frame_of(session, plan.query()).schema

    def _no_command(self) -> Absent:
        doubt = Doubt("a command", "a check does not run this command", call_sites.current_span())
        return Absent(doubt, self._no_result())

    def _no_result(self) -> Unknown:
        doubt = Doubt("a command", "a check does not run this command", call_sites.current_span())
        return Unknown(doubt, self.recording, streaming=False)


def is_databricks_command(text: str) -> bool:
    """Return whether a statement is a command that Databricks has and Spark does not."""
    return _DATABRICKS.match(text) is not None


def _run_over(frames: Mapping[str, Unknown | None], text: str, run: Callable[[str], Any]) -> Any:
    """Return the frame of an SQL text that reads views, which exist only for this."""
    probes = {
        view: frame.probe for view, frame in frames.items() if frame is not None and frame.probe is not None
    }
    for view, probe in probes.items():
        probe.createOrReplaceTempView(view)
    try:
        return run(text)
    finally:
        for view, probe in probes.items():
            probe.sparkSession.catalog.dropTempView(view)


def _view_of(original: Any, session: Any, text: str, args: Any, name: str) -> DataFrame:
    """Return the frame of a statement that creates a temporary view. The view exists only for this."""
    original(session, text, args)
    try:
        return DataFrame(internals.java_session(session).table(name), session)
    finally:
        session.catalog.dropTempView(name)


def frame_of(session: Any, plan: Any) -> DataFrame:
    """Return a parsed query as a frame."""
    return internals.frame_of_plan(session, plan)


def find_relations(plan: Any) -> list[tuple[str, bool]]:
    """Return the tables that a parsed statement reads, each with whether it is read as a stream."""
    tables: dict[str, bool] = {}
    for node in walk_plan(plan):
        if node.getClass().getSimpleName() == "UnresolvedRelation":
            parts = node.multipartIdentifier()
            name = ".".join(str(parts.apply(index)) for index in range(parts.size()))
            tables[name] = tables.get(name, False) or bool(node.isStreaming())
        elif node.getClass().getSimpleName() == "UnresolvedTableValuedFunction":
            name = str(node.name().mkString("."))
            if name.lower() in DATABRICKS_READERS:
                tables[name] = DATABRICKS_READERS[name.lower()]
    return list(tables.items())


def walk_plan(plan: Any) -> list[Any]:
    """Return the operators of a parsed plan and of its named subqueries, from the top."""
    waiting, result = [plan], []
    while waiting:
        node = waiting.pop()
        result.append(node)
        for group in (node.children(), node.innerChildren()):
            waiting += [
                child
                for child in (group.apply(index) for index in range(group.size()))
                if hasattr(child, "innerChildren") and _is_plan(child)
            ]
        subqueries = node.subqueries() if hasattr(node, "subqueries") else None
        if subqueries is not None:
            waiting += [subqueries.apply(index) for index in range(subqueries.size())]
    return result


def _is_plan(node: Any) -> bool:
    return ".plans." in node.getClass().getName() or ".analysis." in node.getClass().getName()


def _cte_names(plan: Any) -> set[str]:
    """Return the names that a statement's WITH clauses define."""
    names = set()
    for node in walk_plan(plan):
        if node.getClass().getSimpleName() == "UnresolvedWith":
            relations_ = node.cteRelations()
            names |= {str(relations_.apply(index)._1()).lower() for index in range(relations_.size())}
    return names


def _is_command(session: Any, plan: Any) -> bool:
    """Return whether Spark would run this statement immediately."""
    names = ("logical.Command", "logical.ParsedStatement", "logical.UnaryParsedStatement")
    classes = [_class(session, f"org.apache.spark.sql.catalyst.plans.{name}") for name in names]
    return any(kind.isInstance(node) for node in walk_plan(plan) for kind in classes if kind is not None)


def _class(session: Any, name: str) -> Any:
    loader = internals.jvm(session).org.apache.spark.util.Utils
    try:
        return loader.classForName(name, False, True)  # noqa: FBT003 - a Java method
    except PySparkException:
        return None


def _identifier(node: Any) -> str:
    """Return the name in a node of the JVM's plan; "" for one that is computed."""
    if node.getClass().getSimpleName() != "UnresolvedIdentifier":
        return ""
    parts = node.nameParts()
    return ".".join(str(parts.apply(index)) for index in range(parts.size()))
