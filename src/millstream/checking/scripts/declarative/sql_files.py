"""Register the statements of a declarative pipeline's SQL files as datasets and flows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions

from millstream.checking.compat import error_parser
from millstream.checking.scripts.declarative.databricks_sql import SparkStatement, in_words_of_spark
from millstream.checking.scripts.declarative.flow_graph import DatasetKind, DeclaredDataset, DeclaredFlow
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.sql_commands import frame_of, is_databricks_command
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.judged_query import JudgedQuery
from millstream.diagnostics.lines import TextLines
from millstream.diagnostics.spec_codes import build_finding
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.checking.scripts.declarative.expectations import DeclaredExpectation
    from millstream.checking.scripts.declarative.flow_graph import FlowGraph
    from millstream.checking.scripts.interception.sql_commands import Statements
    from millstream.diagnostics.finding import Span

# Comments, quoted strings and names. A semicolon outside of them ends a statement.
_PIECE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|;|[^;]", re.DOTALL)
_GAP = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
# Statements that Spark 4.2's pipelines accept and its parser does not.
_AUTO_CDC = re.compile(r"(?:CREATE\s+FLOW\s+\S+\s+AS\s+)?AUTO\s+CDC\s+INTO\s+(\S+)", re.IGNORECASE)
_STREAMING_TABLE = re.compile(
    r"\bCREATE\s+(?:OR\s+\w+\s+)?(?:(?:PRIVATE|TEMPORARY)\s+)?STREAMING\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.`]+)",
    re.IGNORECASE,
)
# A statement with a query that fills a table or a view.
_FLOW = re.compile(
    r"CREATE\s+(?:\w+\s+){0,4}?(?:TABLE|VIEW|FLOW)\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.`]+)"
    r".*\b(?:AS\s+(?:SELECT|WITH|FROM)|INSERT\s+INTO)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES = {
    "source": re.compile(r"\bFROM\s+(?:STREAM\b\s*\(?\s*)?([\w.`]+)", re.IGNORECASE),
    "keys": re.compile(r"\bKEYS\s*\(([^)]*)\)", re.IGNORECASE),
    "sequence_by": re.compile(r"\bSEQUENCE\s+BY\s+(\w*\((?:[^()]|\([^()]*\))*\)|[\w.`]+)", re.IGNORECASE),
    "apply_as_deletes": re.compile(
        r"\bAS\s+DELETE\s+WHEN\s+(.+?)\s*(?=\bAPPLY\b|\bSEQUENCE\b|\bCOLUMNS\b|\bSTORED\b|\Z)",
        re.IGNORECASE | re.DOTALL,
    ),
    "apply_as_truncates": re.compile(
        r"\bAS\s+TRUNCATE\s+WHEN\s+(.+?)\s*(?=\bAPPLY\b|\bSEQUENCE\b|\bCOLUMNS\b|\bSTORED\b|\Z)",
        re.IGNORECASE | re.DOTALL,
    ),
    "ignore_null_updates": re.compile(r"\b(IGNORE\s+NULL\s+UPDATES)\b", re.IGNORECASE),
    "column_list": re.compile(r"\bCOLUMNS\s*\(?(?!\s*[*(])((?:\s*[\w.`]+\s*,)*\s*[\w.`]+)", re.IGNORECASE),
    "except_column_list": re.compile(r"\bCOLUMNS\s+\*\s+EXCEPT\s*\(([^)]*)\)", re.IGNORECASE),
    "stored_as_scd_type": re.compile(r"\bSCD\s+TYPE\s+(\d)", re.IGNORECASE),
    "track_history_column_list": re.compile(r"\bTRACK\s+HISTORY\s+ON\s+([^;]+)", re.IGNORECASE),
}
# The line between two cells of a notebook that Databricks exported.
_CELL = "-- COMMAND ----------"


@dataclass(frozen=True)
class Statement:
    """One statement of a file."""

    text: str
    start: int
    """The offset of its first character in the file's text."""
    is_live_table: bool = False
    """True for a live table of Databricks, which Spark calls a materialized view."""
    expectations: tuple[DeclaredExpectation, ...] = ()


def split_statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text, without the comments before them."""
    start = 0
    for piece in [*_PIECE.finditer(text), None]:
        if piece is not None and piece[0] != ";" and not piece[0].startswith(_CELL):
            continue
        stop = piece.start() if piece else len(text)
        gap = _GAP.match(text, start, stop)
        first = gap.end() if gap else start
        if body := text[first:stop].rstrip():
            yield Statement(body, first)
        start = piece.end() if piece else stop


def _without_comments(text: str) -> str:
    return _PIECE.sub(lambda piece: " " if piece[0][:2] in ("--", "/*") else piece[0], text)


class SqlFile:
    """Registers the statements of SQL files in a graph."""

    def __init__(self, session: Any, graph: FlowGraph, statements: Statements) -> None:
        self.session = session
        self.graph = graph
        self.statements = statements

    def register(self, text: str, path: Path) -> None:
        """Add the datasets and flows of a file. Statements that Spark cannot parse become findings."""
        file, lines = call_sites.display_name(path), TextLines(text)
        for original in split_statements(text):
            # Files without a spec of Spark may be for Databricks.
            project = self.graph.project
            spark_statement = (
                SparkStatement(original.text)
                if project.has_spec
                else in_words_of_spark(original.text, project.configuration)
            )
            self.graph.is_for_databricks |= spark_statement.is_changed
            statement = replace(
                original,
                text=spark_statement.text,
                is_live_table=spark_statement.is_live_table,
                expectations=spark_statement.expectations,
            )
            head = lines.span(file, statement.start, statement.start + len(original.text.partition("\n")[0]))
            self.statements.texts[statement.text] = call_sites.SqlText(head, original.text)
            code = _without_comments(statement.text)
            if changes := _AUTO_CDC.match(code):
                self.graph.changes(changes[1].replace("`", ""), head, _read_changes(code))
                continue
            try:
                plan = internals.parse_plan(self.session, statement.text)
            except PySparkException as error:
                if is_databricks_command(statement.text):
                    continue
                start, stop = error_parser.error_range(error, statement.text)
                reason, why = error_parser.split_message(error)
                same = len(statement.text) == len(original.text)
                span = lines.span(file, statement.start + start, statement.start + stop) if same else head
                message = f"Spark cannot parse the statement: {reason}"
                severity = Severity.ERROR if self.graph.project.has_spec else Severity.INFO
                self.graph.findings.append(build_finding("MS118", message, span, severity=severity, why=why))
                self._note_name(statement, head)
                if severity is Severity.INFO and (flow := _FLOW.match(statement.text)):
                    name, reason = flow[1].replace("`", ""), "Spark cannot parse its statement"
                    self.graph.unparsed.append(JudgedQuery(name, head, reason))
                continue
            self._declare(plan, statement, head)

    def _note_name(self, statement: Statement, head: Span) -> None:
        """Declare the streaming table of a statement that Spark cannot parse: flows of other statements write it."""
        named = _STREAMING_TABLE.search(statement.text)
        if named is None or self.graph.key(named[1]) in self.graph.datasets:
            return
        dataset = DeclaredDataset(
            named[1].replace("`", ""), DatasetKind.STREAMING_TABLE, head, is_unreadable=True
        )
        self.graph.declare(dataset)

    def _declare(self, plan: Any, statement: Statement, head: Span) -> None:
        kind, expectations = str(plan.getClass().getSimpleName()), list(statement.expectations)
        match kind:
            case "CreateStreamingTableAsSelect" | "CreateStreamingTable":
                self._dataset(DatasetKind.STREAMING_TABLE, plan, head, expectations)
            case "CreateMaterializedViewAsSelect":
                self._dataset(DatasetKind.MATERIALIZED_VIEW, plan, head, expectations)
            case "CreateTableAsSelect" if statement.is_live_table:
                self._dataset(DatasetKind.MATERIALIZED_VIEW, plan, head, expectations)
            case "CreateViewCommand" | "CreateView":
                name = (
                    str(plan.name().unquotedString())
                    if kind == "CreateViewCommand"
                    else _full_name(plan.child())
                )
                view = DeclaredDataset(name, DatasetKind.TEMPORARY_VIEW, head, expectations=expectations)
                self.graph.declare(view)
                inner = plan.plan() if kind == "CreateViewCommand" else plan.query()
                self.graph.flows.append(
                    DeclaredFlow(name, name, self._query(inner, statement), head, statement.text)
                )
            case "CreateFlowCommand":
                insert = plan.flowOperation()
                target = str(insert.table().multipartIdentifier().mkString("."))
                name = _full_name(plan.name())
                self.graph.flows.append(
                    DeclaredFlow(name, target, self._query(insert.query(), statement), head, statement.text)
                )
            case "SetCommand":
                self.session.sql(statement.text)
            case "SetCatalogAndNamespace" | "SetNamespaceCommand" | "SetCatalogCommand":
                pass
            case _:
                message = "the statement declares neither a dataset nor a flow"
                fix = "use CREATE STREAMING TABLE, MATERIALIZED VIEW, TEMPORARY VIEW or FLOW"
                self.graph.findings.append(build_finding("MS118", message, head, fix=fix))
                return
        if kind.endswith("AsSelect"):
            name = _full_name(plan.name())
            self.graph.flows.append(
                DeclaredFlow(name, name, self._query(plan.query(), statement), head, statement.text)
            )

    def _dataset(
        self, kind: DatasetKind, plan: Any, head: Span, expectations: list[DeclaredExpectation]
    ) -> None:
        provider = plan.tableSpec().provider()
        format_ = str(provider.get()) if provider.isDefined() else ""
        name, columns = _full_name(plan.name()), _columns(plan)
        self.graph.declare(
            DeclaredDataset(name, kind, head, columns, format=format_, expectations=expectations)
        )

    def _query(self, plan: Any, statement: Statement) -> Callable[[], Any]:
        """Return a function that builds the frame of a statement's query."""

        def build(text: str) -> Any:
            if text == statement.text:
                return frame_of(self.session, plan)
            return frame_of(self.session, _query_of(internals.parse_plan(self.session, text)))

        def make() -> Any:
            text, unknown = self.statements.prepare_query(self.session, statement.text, plan, build)
            return build(text) if unknown is None else unknown

        return make


def _read_changes(text: str) -> dict[str, Any]:
    """Return the settings of an AUTO CDC statement, by the names of `create_auto_cdc_flow`; none if one lacks."""
    text = re.sub(r"--[^\n]*", "", text)
    clauses = {name: pattern.search(text) for name, pattern in _CHANGES.items()}
    source, keys, order = clauses["source"], clauses["keys"], clauses["sequence_by"]
    if source is None or keys is None or order is None:
        return {}
    settings: dict[str, Any] = {
        "source": source[1].replace("`", ""),
        "keys": _names(keys[1]),
        "sequence_by": functions.expr(order[1]),
    }
    for name, value in clauses.items():
        if value is not None and name not in settings:
            settings[name] = _names(value[1]) if name.endswith("column_list") else value[1]
    return settings


def _names(text: str) -> list[str]:
    return [name.strip().strip("`") for name in text.split(",")]


def _query_of(plan: Any) -> Any:
    """Return the query of a parsed statement."""
    match str(plan.getClass().getSimpleName()):
        case "CreateViewCommand":
            return plan.plan()
        case "CreateFlowCommand":
            return plan.flowOperation().query()
        case _:
            return plan.query()


def _columns(plan: Any) -> str | None:
    """Return the columns that a parsed statement gives its dataset, as DDL; None if it gives none."""
    if str(plan.getClass().getSimpleName()) == "CreateTableAsSelect":
        return None
    columns = [plan.columns().apply(index) for index in range(plan.columns().size())]
    return ", ".join(f"`{column.name()}` {column.dataType().sql()}" for column in columns) or None


def _full_name(identifier: Any) -> str:
    """Return the name of Spark's parsed identifier."""
    return str(identifier.nameParts().mkString("."))
