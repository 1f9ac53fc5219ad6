"""Register the statements of a declarative pipeline's SQL files as datasets and flows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.checking.compat import error_parser
from millstream.checking.scripts.declarative.flow_graph import DatasetKind, DeclaredDataset, DeclaredFlow
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.sql_commands import frame_of, is_databricks_command
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.lines import TextLines
from millstream.diagnostics.spec_codes import build_finding
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.checking.scripts.declarative.flow_graph import FlowGraph
    from millstream.checking.scripts.interception.sql_commands import Statements
    from millstream.diagnostics.finding import Span

# Comments, quoted strings and names. A semicolon outside of them ends a statement.
_PIECE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|;|[^;]", re.DOTALL)
_GAP = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
# Statements that Spark 4.2's pipelines accept and its parser does not.
_AUTO_CDC = re.compile(r"(?:CREATE\s+FLOW\s+\S+\s+AS\s+)?AUTO\s+CDC\s+INTO\s+(\S+)", re.IGNORECASE)
# What only Databricks accepts, and Spark's words for it.
_OF_DATABRICKS = (
    (re.compile(r"(?<=\bCREATE)(\s+)OR(\s+)REFRESH\b", re.IGNORECASE), r"\1  \2       "),
    (re.compile(r"\bAPPLY(\s+)CHANGES(?=\s+INTO\b)", re.IGNORECASE), r" AUTO\1CDC    "),
)


@dataclass(frozen=True)
class Statement:
    """One statement of a file."""

    text: str
    start: int
    """The offset of its first character in the file's text."""


def split_statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text, without the comments before them."""
    start = 0
    for piece in [*_PIECE.finditer(text), None]:
        if piece is not None and piece[0] != ";":
            continue
        stop = piece.start() if piece else len(text)
        gap = _GAP.match(text, start, stop)
        first = gap.end() if gap else start
        if body := text[first:stop].rstrip():
            yield Statement(body, first)
        start = stop + 1


class SqlFile:
    """Registers the statements of SQL files in a graph."""

    def __init__(self, session: Any, graph: FlowGraph, statements: Statements) -> None:
        self.session = session
        self.graph = graph
        self.statements = statements

    def register(self, text: str, path: Path) -> None:
        """Add the datasets and flows of a file. Statements that Spark cannot parse become findings."""
        file, lines = call_sites.display_name(path), TextLines(text)
        if not self.graph.project.has_spec:
            # Files without a spec of Spark may be for Databricks. Positions in the text stay as they are.
            for words, replacement in _OF_DATABRICKS:
                text, count = words.subn(replacement, text)
                self.graph.is_for_databricks |= bool(count)
        for statement in split_statements(text):
            head = lines.span(file, statement.start, statement.start + len(statement.text.partition("\n")[0]))
            self.statements.texts[statement.text] = call_sites.SqlText(head, statement.text)
            if changes := _AUTO_CDC.match(statement.text):
                self.graph.changes(changes[1].strip("`"), head)
                continue
            try:
                plan = internals.parse_plan(self.session, statement.text)
            except PySparkException as error:
                if is_databricks_command(statement.text):
                    continue
                start, stop = error_parser.error_range(error, statement.text)
                reason, why = error_parser.split_message(error)
                span = lines.span(file, statement.start + start, statement.start + stop)
                message = f"Spark cannot parse the statement: {reason}"
                severity = Severity.ERROR if self.graph.project.has_spec else Severity.INFO
                self.graph.findings.append(build_finding("MS118", message, span, severity=severity, why=why))
                continue
            self._declare(plan, statement, head)

    def _declare(self, plan: Any, statement: Statement, head: Span) -> None:
        kind = str(plan.getClass().getSimpleName())
        match kind:
            case "CreateStreamingTableAsSelect" | "CreateStreamingTable":
                self._dataset(DatasetKind.STREAMING_TABLE, plan, head)
            case "CreateMaterializedViewAsSelect":
                self._dataset(DatasetKind.MATERIALIZED_VIEW, plan, head)
            case "CreateViewCommand" | "CreateView":
                name = (
                    str(plan.name().unquotedString())
                    if kind == "CreateViewCommand"
                    else _full_name(plan.child())
                )
                self.graph.declare(DeclaredDataset(name, DatasetKind.TEMPORARY_VIEW, head))
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

    def _dataset(self, kind: DatasetKind, plan: Any, head: Span) -> None:
        provider = plan.tableSpec().provider()
        format_ = str(provider.get()) if provider.isDefined() else ""
        self.graph.declare(DeclaredDataset(_full_name(plan.name()), kind, head, format=format_))

    def _query(self, plan: Any, statement: Statement) -> Callable[[], Any]:
        """Return a function that builds the frame of a statement's query."""

        def make() -> Any:
            prepared_text, unknown = self.statements.prepare_query(self.session, statement.text, plan)
            if unknown is not None:
                return unknown
            if prepared_text == statement.text:
                return frame_of(self.session, plan)
            parsed = internals.parse_plan(self.session, prepared_text)
            return frame_of(self.session, _query_of(parsed))

        return make


def _query_of(plan: Any) -> Any:
    """Return the query of a parsed statement."""
    match str(plan.getClass().getSimpleName()):
        case "CreateViewCommand":
            return plan.plan()
        case "CreateFlowCommand":
            return plan.flowOperation().query()
        case _:
            return plan.query()


def _full_name(identifier: Any) -> str:
    """Return the name of Spark's parsed identifier."""
    return str(identifier.nameParts().mkString("."))
