"""`spark.sql` for the time of a check: queries are analysed, commands that change something are not run."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.dataframe import DataFrame
from pyspark.sql.sql_formatter import SQLStringFormatter

from millstream.runtime.scripts import calls
from millstream.runtime.scripts.formats import FILES, short
from millstream.runtime.scripts.record import Doubt
from millstream.runtime.scripts.unknown import Absent, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.runtime.scripts.patches import Patches
    from millstream.runtime.scripts.reading import Reading
    from millstream.runtime.scripts.record import Recording

# Statements that Spark takes in a declarative pipeline only: it says so itself.
_PIPELINES = ("CreateStreamingTable", "CreateMaterializedView", "CreateFlowCommand")


class Statements:
    """Replaces `spark.sql` and `spark.table`."""

    def __init__(self, recording: Recording, reading: Reading) -> None:
        self.recording = recording
        self.reading = reading
        self.texts: dict[str, calls.Given] = {}
        """What the user gave to Spark, by the SQL text that Spark was shown."""

    def install(self, patches: Patches) -> None:
        """Replace the methods of the session and the catalog."""
        patches.wrap(SparkSession, "sql", self._sql)
        patches.wrap(SparkSession, "table", self._table)
        patches.wrap(Catalog, "tableExists", self._exists)
        for method in (
            "createTable",
            "createExternalTable",
            "refreshTable",
            "recoverPartitions",
            "cacheTable",
        ):
            patches.set(Catalog, method, lambda *_args, **_named: None)

    def _table(self, original: Any, session: SparkSession, name: str) -> Any:
        return self.reading.table(session, name, streaming=False, original=lambda: original(session, name))

    def _exists(self, original: Any, catalog: Catalog, name: str, *more: Any) -> bool:
        key = name.replace("`", "").lower()
        return key in self.recording.tables or key in self.recording.unknown or original(catalog, name, *more)

    def _sql(self, original: Any, session: Any, sqlQuery: str, args: Any = None, **named: Any) -> Any:  # noqa: N803
        lost = next((one for one in named.values() if isinstance(one, Unknown | Absent)), None)
        if lost is not None:
            return Unknown(lost.doubt, self.recording, streaming=getattr(lost, "isStreaming", False))
        span = calls.here()
        formatter = SQLStringFormatter(session)
        try:
            text = formatter.format(sqlQuery, **named) if named else sqlQuery
            if span is not None:
                self.texts[text] = calls.Given(span, text)
            return self._judged(original, session, text, args)
        finally:
            formatter.clear()

    def _judged(self, original: Any, session: Any, text: str, args: Any) -> Any:
        try:
            plan = session._jsparkSession.sessionState().sqlParser().parsePlan(text)
        except PySparkException:
            # Spark says the same again, of the call itself.
            return original(session, text, args)
        kind = str(plan.getClass().getSimpleName())
        if kind in ("CreateViewCommand", "CreateView"):
            return self._view(original, session, text, args, plan)
        if kind == "SetCommand" or kind.startswith(_PIPELINES):
            return original(session, text, args)
        if _changes(session, plan):
            self._made(session, kind, plan)
            return Absent(Doubt("a command", "a check does not run it", calls.here()), self._nothing())
        text, lost = self.prepared(session, text, plan)
        return original(session, text, args) if lost is None else lost

    def prepared(self, session: Any, text: str, plan: Any) -> tuple[str, Unknown | None]:
        """Make what a parsed query reads into views of the session; with it the text that names them.

        A name with a dot is replaced by a view's at the same place, so that what Spark says of places stays true.
        The second value is not None when nothing is known of something that the query reads.
        """
        lost, streams, given = None, False, text
        inner = _with_names(plan)
        for name, streaming in relations(plan):
            streams = streams or streaming
            frame = None if name.lower() in inner else self._frame(session, name, streaming=streaming)
            if isinstance(frame, Unknown | Absent):
                lost = lost or frame.doubt
            elif frame is not None:
                view = re.sub(r"\W", "_", name.rpartition(".")[2]) if "." in name else name
                frame.createOrReplaceTempView(view)
                quoted = re.escape(name).replace(r"\.", r"`?\s*\.\s*`?")
                pattern = rf"(?<![\w.`])`?{quoted}`?(?![\w.`])"
                text = re.sub(pattern, _in_place(view), text, flags=re.IGNORECASE) if view != name else text
        if given in self.texts:
            self.texts[text] = self.texts[given]
        return text, None if lost is None else Unknown(lost, self.recording, streaming=streams)

    def _frame(self, session: Any, name: str, *, streaming: bool) -> Any:
        """What a name stands for; None for a view that the session has."""
        own = self.reading.own(session, name, streaming)
        if own is not None:
            return own
        kind, _, path = name.partition(".")
        if path and short(kind) in (*FILES, "delta") and "/" in path:
            return session.read.format(kind).load(path)
        if name.lower() in self.recording.unknown:
            return Unknown(self.recording.unknown[name.lower()], self.recording, streaming=streaming)
        schema = self.recording.tables.get(name.lower())
        if exists(session, name):
            return None
        if schema is not None:
            return self.reading.of_table(session, name, schema, streaming=streaming)
        why = "its columns are not known without connecting"
        doubt = Doubt(f"table {name}", why, calls.here(), "read it with a schema")
        return Unknown(self.recording.doubt(doubt), self.recording, streaming=streaming)

    def _view(self, original: Any, session: Any, text: str, args: Any, plan: Any) -> Any:
        """A view over what is known is made for this session; one over what is not is remembered as unknown."""
        inner = plan.plan() if hasattr(plan, "plan") else plan.query()
        name = str(plan.name().unquotedString()) if hasattr(plan, "name") else ""
        text, lost = self.prepared(session, text, inner)
        if lost is not None:
            self.recording.unknown[name.lower()] = lost.doubt
        elif plan.getClass().getSimpleName() == "CreateViewCommand":
            return original(session, text, args)
        return self._nothing()

    def _made(self, session: Any, kind: str, plan: Any) -> None:
        """A table that the script makes: its columns are known from then on."""
        with contextlib.suppress(Exception):
            parts = plan.name().nameParts() if kind.startswith("CreateTable") else None
            if parts is None:
                return
            name = ".".join(parts.apply(index) for index in range(parts.size())).lower()
            if kind == "CreateTable":
                self.recording.tables[name] = session._parse_ddl(plan.tableSchema().toDDL())
            else:
                self.recording.tables[name] = frame_of(session, plan.query()).schema

    def _nothing(self) -> Unknown:
        doubt = Doubt("a command", "a check does not run it", calls.here())
        return Unknown(doubt, self.recording, streaming=False)


def _in_place(view: str) -> Callable[[re.Match[str]], str]:
    """Puts a name where another stood, at the same width: what Spark says of a place stays true."""
    return lambda found: view.rjust(len(found[0]))


def exists(session: Any, name: str) -> bool:
    """Has the session a table or view of this name? It has none in a catalog that it does not know."""
    try:
        return bool(session._jsparkSession.catalog().tableExists(name))
    except PySparkException:
        return False


def frame_of(session: Any, plan: Any) -> DataFrame:
    """A parsed query as a frame."""
    made = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(made, session)


def relations(plan: Any) -> list[tuple[str, bool]]:
    """The tables that a parsed statement names, each with whether it reads it as a stream."""
    found: dict[str, bool] = {}
    for node in nodes(plan):
        if node.getClass().getSimpleName() == "UnresolvedRelation":
            parts = node.multipartIdentifier()
            name = ".".join(str(parts.apply(index)) for index in range(parts.size()))
            found[name] = found.get(name, False) or bool(node.isStreaming())
    return list(found.items())


def nodes(plan: Any) -> list[Any]:
    """The operators of a parsed plan, those of named subqueries too, from the top."""
    waiting, found = [plan], []
    while waiting:
        node = waiting.pop()
        found.append(node)
        for group in (node.children(), node.innerChildren()):
            waiting += [
                child
                for child in (group.apply(index) for index in range(group.size()))
                if hasattr(child, "innerChildren") and _is_plan(child)
            ]
        subqueries = node.subqueries() if hasattr(node, "subqueries") else None
        if subqueries is not None:
            waiting += [subqueries.apply(index) for index in range(subqueries.size())]
    return found


def _is_plan(node: Any) -> bool:
    return ".plans." in node.getClass().getName() or ".analysis." in node.getClass().getName()


def _with_names(plan: Any) -> set[str]:
    """Names that a statement's own WITH clauses give."""
    found = set()
    for node in nodes(plan):
        if node.getClass().getSimpleName() == "UnresolvedWith":
            relations_ = node.cteRelations()
            found |= {str(relations_.apply(index)._1()).lower() for index in range(relations_.size())}
    return found


def _changes(session: Any, plan: Any) -> bool:
    """Would Spark run this as soon as it is given it?"""
    names = ("logical.Command", "logical.ParsedStatement", "logical.UnaryParsedStatement")
    classes = [_class(session, f"org.apache.spark.sql.catalyst.plans.{name}") for name in names]
    return any(kind.isInstance(node) for node in nodes(plan) for kind in classes if kind is not None)


def _class(session: Any, name: str) -> Any:
    loader = session._jvm.org.apache.spark.util.Utils
    try:
        return loader.classForName(name, False, True)  # noqa: FBT003 - a Java method
    except PySparkException:
        return None
