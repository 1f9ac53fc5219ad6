"""Check a pipeline: the spec's own findings, the rules, Spark's analysis, and the guarantee of each sink."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.deduplicate import deduplicate_findings
from millstream.analysis.query.delivery_guarantee import compute_guarantees
from millstream.analysis.rule_runner import finish_findings, phrases_by_code, run_plan_rules, run_spec_rules
from millstream.checking.connectivity import check_connectivity
from millstream.diagnostics.finding import Severity
from millstream.pipeline.spec_file import display_path, sort_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.analysis.query.delivery_guarantee import Promise
    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding
    from millstream.diagnostics.judged_query import JudgedQuery
    from millstream.pipeline.spec_file import LoadedSpec

# Findings show a line of the file they point into. A file that is longer than this, in bytes, is not handwritten.
MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    `findings` are in file order, one per cause, without those that the spec allows. `verdict` are Spark's own
    findings before they are merged with the rules. `queries` are the queries that Spark could plan, and `promises`
    the guarantees of each sink; both are empty if they are not known. `texts` maps file names to file contents.
    """

    findings: list[Finding]
    queries: tuple[PlannedQuery, ...]
    promises: list[Promise]
    verdict: tuple[Finding, ...]
    texts: Mapping[str, str]
    is_unanswered: bool = False
    """True if no server responded."""
    judged: tuple[JudgedQuery, ...] | None = None
    """The queries of a script or of a declarative project, checked or not. None for a spec."""

    @property
    def has_judged_nothing(self) -> bool:
        """Return whether a script was run and none of its queries was checked."""
        return self.judged is not None and all(query.reason for query in self.judged)

    @property
    def has_errors(self) -> bool:
        """Return whether there is an error among the findings."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def is_unreadable(self) -> bool:
        """Return whether the spec could not be read at all."""
        return any(finding.code == "MS001" for finding in self.findings)


def check(loaded: LoadedSpec, spark: SparkSession | None = None, *, connect: bool = False) -> CheckResult:
    """Check a loaded spec. With a session, check Spark's analysis and the query plans too.

    No query starts. With `connect`, every source and sink is connected to; otherwise none is. With a session, each
    of the user's Python functions is called once; without one, none of the user's code runs. If the spec itself has
    errors, Spark and external systems are not consulted.
    """
    pipeline = loaded.pipeline
    if pipeline is None:
        return CheckResult(list(loaded.findings), (), [], (), loaded.texts)
    findings = run_spec_rules(loaded)
    verdict: Sequence[Finding] = ()
    queries: tuple[PlannedQuery, ...] = ()
    planned = spark is not None and not loaded.has_errors
    if spark is not None and planned:
        # Imported here so that a check without Spark does not load PySpark.
        from millstream.checking.spark_analysis import analyse_pipeline  # noqa: PLC0415

        examined = analyse_pipeline(spark, loaded)
        verdict, queries = examined.findings, examined.queries
        findings += run_plan_rules(queries, loaded)
    silent = False
    if connect and not loaded.has_errors:
        connected = check_connectivity(loaded, queries)
        findings += connected.findings
        silent = 0 < connected.questions == connected.unanswered
    texts = {
        **loaded.texts,
        **read_texts([*_function_files(loaded), *_files([*findings, *verdict])], loaded.texts),
    }
    ruled = finish_findings(replace(loaded, texts=texts), findings, complete=planned, has_connected=connect)
    ordered = sort_findings(
        deduplicate_findings([*loaded.findings, *ruled], verdict, phrases_by_code()), loaded.places.file
    )
    has_errors = any(finding.severity is Severity.ERROR for finding in ordered)
    return CheckResult(
        ordered,
        queries,
        [] if has_errors else compute_guarantees(pipeline, queries, loaded.places),
        tuple(verdict),
        texts,
        silent,
    )


def _function_files(loaded: LoadedSpec) -> Iterable[str]:
    """Yield the files of the views' Python functions, named as in findings."""
    assert loaded.pipeline is not None
    for view in loaded.pipeline.views.values():
        if view.hook and isinstance(view.hook[1], str):
            module = view.hook[1].partition(":")[0].replace(".", "/")
            yield str(display_path(loaded.pipeline.folder / f"{module}.py"))


def _files(findings: Iterable[Finding]) -> Iterable[str]:
    return (finding.span.file for finding in findings if finding.span)


def read_texts(files: Iterable[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each readable file that is not in `known`."""
    texts = {}
    for name in dict.fromkeys(files):
        file = Path(name)
        try:
            if name not in known and file.is_file() and file.stat().st_size <= MOST_BYTES:
                texts[name] = file.read_text(encoding="utf-8")
        except (OSError, ValueError):
            # The findings in this file are shown without their lines.
            continue
    return texts
