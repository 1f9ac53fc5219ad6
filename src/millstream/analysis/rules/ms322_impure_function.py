"""Spark calls a Python function for rows, but its result depends on more than these rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.python.purity import ImpureCall, find_impure_calls
from millstream.analysis.rule_context import Code, Facts
from millstream.diagnostics.finding import Span
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Check the files of Python views by reading their text, without running them."""
    files: dict[Path, tuple[str, set[str]]] = {}
    for name, view in facts.pipeline.views.items():
        if view.hook is None or not isinstance(view.hook[1], str):
            continue
        module, _, function = view.hook[1].partition(":")
        _, row_functions = files.setdefault(
            facts.pipeline.folder / (module.replace(".", "/") + ".py"), (name, set())
        )
        if view.is_stateful:
            row_functions.add(function)
    for file, (name, row_functions) in files.items():
        yield from _find_unbounded(file, str(display_path(file)), facts.query_of(name), row_functions)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check the files in which a script's query is written."""
    if facts is not None:
        return
    spans = [query.span, *(operator.span for operator in query.walk())]
    for file in dict.fromkeys(span.file for span in spans if span):
        yield from _find_unbounded(Path(file), file, query.name)


def _find_unbounded(
    file: Path, name: str, query: str | None, called: Collection[str] = ()
) -> Iterator[Finding]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        # MS108 reports a missing file.
        return
    for impurity in find_impure_calls(text, called):
        yield CODE.warning(
            f"function '{impurity.function}' is called for rows and {impurity.what}: {impurity.call}",
            _build_span(name, impurity),
            why="after a crash the batch runs again and the function may return another value, but Spark assumes "
            "that the same row always gives the same value",
            fix="pass the value as a column, such as current_timestamp(), or declare the function "
            "asNondeterministic()",
            query=query,
        )


def _build_span(file: str, call: ImpureCall) -> Span:
    return Span(file, call.line, call.column, call.end_line, call.end_column)
