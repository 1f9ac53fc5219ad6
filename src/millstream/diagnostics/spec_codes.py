"""The codes of findings that no rule reports, each with its name and one sentence."""

from __future__ import annotations

from millstream.diagnostics.finding import Edit, Finding, Severity, Span

CODES: dict[str, tuple[str, str]] = {
    "MS001": ("unreadable-spec", "The file cannot be read as YAML."),
    "MS002": ("unknown-key", "A key does not exist; most often it is misspelt."),
    "MS003": ("wrong-value", "A value has the wrong type, or is not allowed for its key."),
    "MS004": ("missing-key", "A required key is missing."),
    "MS005": ("duplicate-key", "A key occurs twice in one mapping."),
    "MS006": ("unset-variable", "A variable has no value, or a secret's file cannot be used."),
    "MS007": ("bad-override", "A --set option is invalid or cannot be applied."),
    "MS008": ("no-kind", "A source or sink has no kind, or several."),
    "MS009": ("two-definitions", "One view is defined in two places."),
    "MS010": ("broken-python", "A pipeline written in Python cannot be loaded."),
    "MS011": ("broken-view", "A view has neither SQL nor a function, or its file cannot be read."),
    "MS012": ("unknown-column", "A setting names a column that is not in the declared schema."),
    "MS013": ("no-watermark", "A setting needs a watermark, but the source has none."),
    "MS014": ("no-schema", "A source decodes messages, but has no schema."),
    "MS015": (
        "static-or-stream",
        "A source is read as a table or a stream, which its connector does not support.",
    ),
    "MS016": ("unknown-rule", "A severity is set for a code that does not exist."),
    "MS017": ("fixed-severity", "A severity is set for a rule whose findings are always errors."),
    "MS018": (
        "not-in-pipeline",
        "A test names a query, source, view or sink that its pipeline does not have.",
    ),
    "MS019": ("empty-step", "A step of a test does nothing, or has no batch to act on."),
    "MS020": ("no-table-value", "A placeholder of a test has no value in the test's table."),
    "MS091": ("bad-allow", "A comment that allows a finding has no reason, or matches no finding."),
    "MS111": (
        "spark-analysis",
        "Spark cannot analyse a source, a view or a condition of a sink; Spark's message gives the reason.",
    ),
    "MS112": ("python-view-failed", "A Python view raises an error, or does not return a DataFrame."),
    "MS113": ("not-judged", "A part of a script or project cannot be checked here."),
    "MS114": ("script-fails", "A script, or a file of a declarative pipeline, raises an error."),
    "MS115": ("no-query", "A script or project starts no streaming query."),
    "MS116": ("no-checkpoint", "A query of a script has no checkpoint location."),
    "MS117": ("shared-by-queries", "Two queries of a script have the same checkpoint or the same name."),
    "MS118": ("broken-flow", "Spark does not accept a flow or a setting of a declarative pipeline."),
    "MS119": (
        "wait-misplaced",
        "A script does not wait for its queries, or waits before it has started all of them.",
    ),
    "MS311": (
        "spark-refuses",
        "Spark refuses to start the query, in any output mode or in this one; Spark's message gives the reason.",
    ),
    "MS560": ("out-of-reach", "A server does not answer, or refuses the login."),
    "MS561": ("not-there", "A topic, table or folder does not exist."),
    "MS562": (
        "compacted-topic",
        "A compacted topic is read as a stream.",
    ),
    "MS563": ("short-retention", "A topic deletes its records sooner than an outage may last."),
    "MS564": ("made-anew", "A topic or table was deleted and recreated since the checkpoint was created."),
    "MS565": ("first-batch", "The first batch of a query would contain all records of a large topic."),
    "MS566": (
        "no-such-offset",
        "Offsets or versions of the spec or a checkpoint no longer exist, or do not exist yet.",
    ),
    "MS567": ("no-right", "A permission for writing is missing."),
    "MS568": (
        "columns-differ",
        "A table lacks a column of the query, or has a type that does not accept the query's values.",
    ),
    "MS569": ("no-unique-index", "A table lacks the unique index that its key needs."),
    "MS570": (
        "foreign-folder",
        "A folder already contains the output of another kind of writer, whose readers would ignore Millstream's "
        "files.",
    ),
    "MS571": ("foreign-checkpoint", "A checkpoint was created with other sources than the query has."),
    "MS572": ("record-limit", "A producer may send larger records than a topic accepts."),
    "MS573": ("compacted-without-key", "Records without a key are written to a compacted topic."),
    "MS574": ("changed-in-place", "A table that is read as a stream has commits that change or delete rows."),
    "MS575": (
        "cluster-lacks",
        "An executor of the cluster lacks a package or a folder that a query needs, or its clock is wrong.",
    ),
    "MS576": ("unconditional-store", "The object store of a checkpoint does not support conditional writes."),
}

ASKED = frozenset(code for code in CODES if code.startswith(("MS56", "MS57")))
"""Codes that only `check --connect` finds. A spec may allow them and set their severity, as for rules."""


def build_finding(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    severity: Severity = Severity.ERROR,
    label: str = "",
    why: str = "",
    fix: str = "",
    edit: Edit | None = None,
    query: str | None = None,
) -> Finding:
    """Build a finding whose name comes from `CODES`. Raises KeyError for an unknown code."""
    return Finding(code, CODES[code][0], severity, message, span, label, why, fix, edit, query)
