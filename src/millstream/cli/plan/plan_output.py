"""Print the verdicts of `millstream plan`: as text, JSON, GitHub annotations and JUnit."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from millstream.cli.table import terminal_width
from millstream.diagnostics.finding import Finding, Severity
from millstream.diagnostics.junit import format_findings
from millstream.diagnostics.render import render
from millstream.diagnostics.snippet import escape_control
from millstream.plan.verdict import RestartVerdict
from millstream.spec.secrets.redaction import redact_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.diagnostics.finding import Span
    from millstream.pipeline.spec_file import LoadedSpec
    from millstream.plan.query_plan import QueryPlan
    from millstream.plan.verdict import Judgement

# Longer lines are hard to read, also on a wide terminal.
_WIDTH = 110
_UNFINISHED = "the rows in its sinks are yet to be replaced; --apply was interrupted"
_SEVERITIES = {
    RestartVerdict.CONTINUES: Severity.INFO,
    RestartVerdict.CONTINUES_WITH_NOTE: Severity.INFO,
    RestartVerdict.REPARTITION: Severity.WARNING,
    RestartVerdict.CANNOT_TELL: Severity.WARNING,
    RestartVerdict.START_AFRESH: Severity.ERROR,
    RestartVerdict.SILENTLY_WRONG: Severity.ERROR,
}


def render_plans(
    plans: Sequence[QueryPlan], loaded: LoadedSpec, form: str, against: Path | None = None
) -> str:
    """Return the verdicts in a format: text, json, github or junit. `against` is the other side of `--against`."""
    if form == "json":
        text = json.dumps({"queries": [_to_json(plan) for plan in plans]}, indent=2) + "\n"
    elif form == "text":
        text = "".join(
            f"{escape_control(line)}\n" for plan in plans for line in _format(plan, loaded, against)
        )
    else:
        findings = [finding for plan in plans for finding in list_findings(plan, loaded)]
        findings += [_note_new(plan, loaded, against) for plan in plans if plan.is_new and against]
        text = (
            render(findings, loaded.texts, "github")
            if form == "github"
            else format_findings(findings, list(loaded.texts), command="plan")
        )
    return redact_values(text)


def _to_json(plan: QueryPlan) -> dict[str, object]:
    data: dict[str, object] = {
        "query": plan.query,
        "verdict": plan.verdict.value,
        "checkpoint": plan.checkpoint,
        "begins": plan.is_new,
        "unfinished": plan.is_unfinished,
        "changes": plan.list_changes(),
    }
    return {**data, "accept": plan.accept_code} if plan.verdict.is_refused else data


def _format(plan: QueryPlan, loaded: LoadedSpec, against: Path | None) -> Iterator[str]:
    if plan.is_new:
        reason = f"is not in {against}" if against else "has no checkpoint yet"
        yield f"{plan.query}: {reason}; it begins with the first batch"
        return
    yield f"{plan.query}: {plan.verdict.replace('_', ' ')}" + (
        "" if plan.judgements else "; nothing has changed"
    )
    if plan.is_unfinished:
        yield f"  {_UNFINISHED}"
    for judgement in plan.judgements:
        span = locate(loaded, plan.query, judgement)
        yield from _indent(f"{judgement.what} ({judgement.verdict.replace('_', ' ')})", "  ")
        if span:
            yield f"    --> {span.file}:{span.line}"
        for label, sentence in (
            ("spark", judgement.spark),
            ("sinks", judgement.sinks),
            ("fix", judgement.fix),
        ):
            if sentence:
                yield from _indent(f"{label}: {sentence}", "    ")
    if plan.verdict.is_refused:
        yield f"  to start anyway: millstream run --accept {plan.accept_code}"


def _indent(text: str, indent: str) -> list[str]:
    width = min(_WIDTH, terminal_width() or _WIDTH)
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


def _note_new(plan: QueryPlan, loaded: LoadedSpec, against: Path) -> Finding:
    """Return the note that only the current spec has a query."""
    return Finding(
        code="plan",
        name="new-query",
        severity=Severity.INFO,
        message=f"query '{plan.query}' is not in {against}; it begins with the first batch",
        span=loaded.places.key("queries", plan.query),
        why="a renamed query also begins without its checkpoint",
        fix=f"rename the checkpoint of a renamed query: millstream checkpoint rename BEFORE {plan.query}",
        query=plan.query,
    )


def list_findings(plan: QueryPlan, loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield the changes of a query as findings of the spec, and an `--apply` that was interrupted."""
    if plan.is_unfinished:
        yield Finding(
            code="plan",
            name="unfinished-apply",
            severity=Severity.ERROR,
            message=f"query '{plan.query}': {_UNFINISHED}",
            span=loaded.places.key("queries", plan.query),
            why="no run starts until then",
            fix=f"run 'millstream plan --apply --select {plan.query}'",
            query=plan.query,
        )
    for judgement in plan.judgements:
        yield Finding(
            code="plan",
            name=judgement.kind.replace("_", "-"),
            severity=_SEVERITIES[judgement.verdict],
            message=f"query '{plan.query}': {judgement.verdict.replace('_', ' ')}: {judgement.what}",
            span=locate(loaded, plan.query, judgement),
            why=". ".join(sentence for sentence in (judgement.spark, judgement.sinks) if sentence),
            fix=judgement.fix,
            query=plan.query,
        )


def locate(loaded: LoadedSpec, query: str, judgement: Judgement) -> Span | None:
    """Return the place of a change in the spec, or of its query if it has none."""
    pipeline = loaded.pipeline
    if pipeline is None:
        return None
    path = tuple(judgement.place.split(".")) if judgement.place else ("queries",)
    if path == ("views",) and pipeline.reads(query) in pipeline.views:
        path = ("views", pipeline.reads(query))
    elif len(path) == 1 and path[0] in ("views", "queries", "sources"):
        path = ("queries", query)
    return loaded.places.key(*path)
