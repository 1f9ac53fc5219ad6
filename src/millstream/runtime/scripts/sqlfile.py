"""Statements of a declarative pipeline's SQL file, registered as datasets and flows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.lines import Lines
from millstream.runtime import complaints
from millstream.runtime.scripts import calls
from millstream.runtime.scripts.graph import Dataset, Kind, Written
from millstream.runtime.scripts.statements import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.diagnostics.finding import Span
    from millstream.runtime.scripts.graph import Graph
    from millstream.runtime.scripts.statements import Statements

# Comments, quoted texts and names; a semicolon outside of them ends a statement.
_PIECE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|;|[^;]", re.DOTALL)
_GAP = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
# Spark 4.2's parser does not read these; its pipelines do.
_CHANGES = re.compile(r"(?:CREATE\s+FLOW\s+\S+\s+AS\s+)?AUTO\s+CDC\s+INTO\s+(\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """One statement of a file."""

    text: str
    start: int
    """Its first character in the file's text."""


def statements(text: str) -> Iterator[Statement]:
    """The statements of a text, without the comments before them."""
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

    def __init__(self, session: Any, graph: Graph, told: Statements) -> None:
        self.session = session
        self.graph = graph
        self.told = told

    def register(self, text: str, path: Path) -> None:
        """Add what a file declares; what Spark cannot read of it becomes findings."""
        file, lines = calls.named(path), Lines(text)
        for one in statements(text):
            head = lines.span(file, one.start, one.start + len(one.text.partition("\n")[0]))
            self.told.texts[one.text] = calls.Given(head, one.text)
            if found := _CHANGES.match(one.text):
                self.graph.changes(found[1].strip("`"), head)
                continue
            try:
                plan = self.session._jsparkSession.sessionState().sqlParser().parsePlan(one.text)
            except PySparkException as wrong:
                start, stop = complaints.stretch(wrong, one.text)
                what, why = complaints.words(wrong)
                span = lines.span(file, one.start + start, one.start + stop)
                said = f"Spark cannot read the statement: {what}"
                self.graph.findings.append(finding("MS118", said, span, why=why))
                continue
            self._declare(plan, one, head)

    def _declare(self, plan: Any, one: Statement, head: Span) -> None:
        kind = str(plan.getClass().getSimpleName())
        match kind:
            case "CreateStreamingTableAsSelect" | "CreateStreamingTable":
                self._dataset(Kind.STREAMING_TABLE, plan, head)
            case "CreateMaterializedViewAsSelect":
                self._dataset(Kind.MATERIALIZED_VIEW, plan, head)
            case "CreateViewCommand" | "CreateView":
                name = (
                    str(plan.name().unquotedString()) if kind == "CreateViewCommand" else _parts(plan.child())
                )
                self.graph.declare(Dataset(name, Kind.TEMPORARY_VIEW, head))
                inner = plan.plan() if kind == "CreateViewCommand" else plan.query()
                self.graph.flows.append(Written(name, name, self._query(inner, one), head, one.text))
            case "CreateFlowCommand":
                insert = plan.flowOperation()
                target = str(insert.table().multipartIdentifier().mkString("."))
                name = _parts(plan.name())
                self.graph.flows.append(
                    Written(name, target, self._query(insert.query(), one), head, one.text)
                )
            case "SetCommand":
                self.session.sql(one.text)
            case "SetCatalogAndNamespace" | "SetNamespaceCommand" | "SetCatalogCommand":
                pass
            case _:
                said = "the statement declares neither a dataset nor a flow"
                fix = "a pipeline's SQL holds CREATE STREAMING TABLE, MATERIALIZED VIEW, TEMPORARY VIEW and FLOW"
                self.graph.findings.append(finding("MS118", said, head, fix=fix))
                return
        if kind.endswith("AsSelect"):
            name = _parts(plan.name())
            self.graph.flows.append(Written(name, name, self._query(plan.query(), one), head, one.text))

    def _dataset(self, kind: Kind, plan: Any, head: Span) -> None:
        provider = plan.tableSpec().provider()
        format_ = str(provider.get()) if provider.isDefined() else ""
        self.graph.declare(Dataset(_parts(plan.name()), kind, head, format=format_))

    def _query(self, plan: Any, one: Statement) -> Callable[[], Any]:
        """The frame of a statement's query, made when it is asked for."""

        def make() -> Any:
            padded, lost = self.told.prepared(self.session, one.text, plan)
            if lost is not None:
                return lost
            if padded == one.text:
                return frame_of(self.session, plan)
            parsed = self.session._jsparkSession.sessionState().sqlParser().parsePlan(padded)
            return frame_of(self.session, _inner(parsed))

        return make


def _inner(plan: Any) -> Any:
    """The query of a parsed statement."""
    match str(plan.getClass().getSimpleName()):
        case "CreateViewCommand":
            return plan.plan()
        case "CreateFlowCommand":
            return plan.flowOperation().query()
        case _:
            return plan.query()


def _parts(identifier: Any) -> str:
    """The name in Spark's parsed form of it."""
    return str(identifier.nameParts().mkString("."))
