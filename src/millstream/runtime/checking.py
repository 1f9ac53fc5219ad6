"""The whole check of a pipeline: the spec's own findings, the rules, Spark's verdict, what each sink promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.causes import once
from millstream.analysis.check import of_plans, of_spec, phrases, settled
from millstream.analysis.guarantee import promises
from millstream.diagnostics.finding import Severity
from millstream.pipeline.load import in_file_order, shown
from millstream.runtime.asking import ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.guarantee import Promise
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.load import Loaded

# A file that a finding points into is shown by its line; nobody writes a longer one by hand.
MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Checked:
    """What a check found.

    `findings` are all there are, in file order, each cause once, less what the spec allows. `verdict` is what Spark
    said before it was merged with the rules. `queries` are those that Spark could plan, and `promises` those of each
    sink; both are empty where they could not be made. `texts` holds each file that findings point into.
    """

    findings: list[Finding]
    queries: tuple[PlannedQuery, ...]
    promises: list[Promise]
    verdict: tuple[Finding, ...]
    texts: Mapping[str, str]
    silent: bool = False
    """Was the world asked, and nobody answered?"""

    @property
    def failed(self) -> bool:
        """Is there an error among the findings?"""
        return any(found.severity is Severity.ERROR for found in self.findings)

    @property
    def unreadable(self) -> bool:
        """Could the spec not be read at all?"""
        return any(found.code == "MS001" for found in self.findings)


def check(loaded: Loaded, spark: SparkSession | None = None, *, connect: bool = False) -> Checked:
    """Check a loaded spec: with a session by Spark's verdict and the plans too, without one by the spec alone.

    No query starts, and unless `connect` nothing is connected to; then every source and sink is asked too. With a
    session the user's Python functions are called once each; without one none of the user's code runs. A spec that
    has errors of its own is not shown to Spark, and nobody is asked about it.
    """
    pipeline = loaded.pipeline
    if pipeline is None:
        return Checked(list(loaded.findings), (), [], (), loaded.texts)
    found = of_spec(loaded)
    verdict: Sequence[Finding] = ()
    queries: tuple[PlannedQuery, ...] = ()
    planned = spark is not None and not loaded.failed
    if spark is not None and planned:
        # Here and not above: a check without Spark does not load PySpark.
        from millstream.runtime.verdict import examine  # noqa: PLC0415

        examined = examine(spark, loaded)
        verdict, queries = examined.findings, examined.queries
        found += of_plans(queries, loaded)
    silent = False
    if connect and not loaded.failed:
        asked = ask(loaded, queries)
        found += asked.findings
        silent = 0 < asked.questions == asked.unanswered
    texts = {**loaded.texts, **_texts([*_functions(loaded), *_files([*found, *verdict])], loaded.texts)}
    ruled = settled(replace(loaded, texts=texts), found, complete=planned, asked=connect)
    findings = in_file_order(once([*loaded.findings, *ruled], verdict, phrases()), loaded.places.file)
    failed = any(one.severity is Severity.ERROR for one in findings)
    return Checked(
        findings,
        queries,
        [] if failed else promises(pipeline, queries, loaded.places),
        tuple(verdict),
        texts,
        silent,
    )


def _functions(loaded: Loaded) -> Iterable[str]:
    """The files of the views' Python functions, by the names that findings give them."""
    assert loaded.pipeline is not None
    for view in loaded.pipeline.views.values():
        if view.hook and isinstance(view.hook[1], str):
            module = view.hook[1].partition(":")[0].replace(".", "/")
            yield str(shown(loaded.pipeline.folder / f"{module}.py"))


def _files(findings: Iterable[Finding]) -> Iterable[str]:
    return (found.span.file for found in findings if found.span)


def _texts(files: Iterable[str], known: Mapping[str, str]) -> dict[str, str]:
    """The text of each file that is not known yet and can be read."""
    texts = {}
    for name in dict.fromkeys(files):
        file = Path(name)
        try:
            if name not in known and file.is_file() and file.stat().st_size <= MOST_BYTES:
                texts[name] = file.read_text(encoding="utf-8")
        except (OSError, ValueError):
            # Its findings are shown without their lines.
            continue
    return texts
