"""A function of the user's, called for rows, whose result does not come from the rows alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.analysis.impure import Impure, impure
from millstream.diagnostics.finding import Span
from millstream.pipeline.load import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """The files of Python views; reads their text and runs nothing of it."""
    files: dict[Path, tuple[str, set[str]]] = {}
    for name, view in facts.pipeline.views.items():
        if view.hook is None or not isinstance(view.hook[1], str):
            continue
        module, _, function = view.hook[1].partition(":")
        _, called = files.setdefault(
            facts.pipeline.folder / (module.replace(".", "/") + ".py"), (name, set())
        )
        if view.stateful:
            called.add(function)
    for file, (name, called) in files.items():
        yield from _told(file, str(shown(file)), facts.query_of(name), called)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """The files that a script's query is written in."""
    if facts is not None:
        return
    spans = [query.span, *(one.span for one in query.walk())]
    for file in dict.fromkeys(span.file for span in spans if span):
        yield from _told(Path(file), file, query.name)


def _told(file: Path, name: str, query: str | None, called: Collection[str] = ()) -> Iterator[Finding]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        # That a file is not there is told by the rule about Python views.
        return
    for one in impure(text, called):
        yield CODE.warning(
            f"function '{one.function}' is called for rows and {one.what}: {one.call}",
            _span(name, one),
            why="after a crash the batch runs again and the function is called again: it gives something else, and "
            "Spark takes it to be deterministic",
            fix="pass in what it needs as a column, such as current_timestamp(), or declare it asNondeterministic()",
            query=query,
        )


def _span(file: str, one: Impure) -> Span:
    return Span(file, one.line, one.column, one.end_line, one.end_column)
