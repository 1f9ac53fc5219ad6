"""The codes of findings about the spec itself: each with its name and one sentence."""

from __future__ import annotations

from millstream.diagnostics.finding import Edit, Finding, Severity, Span

CODES: dict[str, tuple[str, str]] = {
    "MS001": ("unreadable-spec", "The file cannot be read as YAML."),
    "MS002": ("unknown-key", "A key that nothing reads, most often misspelt."),
    "MS003": ("wrong-value", "A value of the wrong type, or outside what the key takes."),
    "MS004": ("missing-key", "A key that must be there is not."),
    "MS005": ("duplicate-key", "A key stands twice in one mapping."),
    "MS006": ("unset-variable", "A variable has no value, or a secret's file cannot be used."),
    "MS007": ("bad-override", "A --set cannot be understood or applied."),
    "MS008": ("no-kind", "A source or sink does not say which kind it is, or names several."),
    "MS009": ("two-definitions", "One view is defined in two places."),
    "MS010": ("broken-python", "A pipeline written in Python cannot be loaded."),
    "MS011": ("broken-view", "A view says neither its SQL nor its function, or its file cannot be read."),
    "MS012": ("unknown-column", "A column is named that the declared schema does not have."),
    "MS013": ("no-watermark", "A setting that needs a watermark stands where there is none."),
    "MS014": ("no-schema", "Messages are to be decoded and no schema says into what."),
    "MS015": ("static-or-stream", "A source is asked to be read in a way its kind cannot."),
    "MS016": ("unknown-rule", "A severity is given to a code that no rule has."),
    "MS017": ("fixed-severity", "A severity is given to a rule whose findings stay errors."),
    "MS018": (
        "not-in-pipeline",
        "A test names a query, source, view or sink that its pipeline does not have.",
    ),
    "MS019": ("empty-step", "A step of a test does nothing, or has nothing to do it to."),
    "MS020": ("no-table-value", "A placeholder of a test has no value in the test's table."),
    "MS091": ("bad-allow", "A comment that allows a finding gives no reason, or allows nothing."),
    "MS111": (
        "spark-analysis",
        "Spark cannot make a source or view, or ask a condition of a sink: its own words say why.",
    ),
    "MS112": ("python-view-failed", "A Python view raises an error, or gives no DataFrame."),
    "MS113": ("not-judged", "A part of a script or project of which nothing can be known here."),
    "MS114": ("script-fails", "A script, or a file of a declarative pipeline, cannot be run to its end."),
    "MS115": ("no-query", "A script or project starts no streaming query."),
    "MS116": ("no-checkpoint", "A query of a script has no checkpoint location."),
    "MS117": ("shared-by-queries", "Two queries of a script have one checkpoint or one name."),
    "MS118": ("broken-flow", "A flow or a setting of a declarative pipeline is not what Spark takes."),
    "MS119": ("wait-misplaced", "A script does not wait for its queries, or waits before it starts all."),
    "MS311": (
        "spark-refuses",
        "Spark refuses to start the query, in any mode or in this one: its own words say why.",
    ),
    "MS560": ("out-of-reach", "A server does not answer, or lets nobody in."),
    "MS561": ("not-there", "A topic, table or folder that must be there is not."),
    "MS562": (
        "compacted-topic",
        "A topic from which the broker removes superseded records is read as a stream.",
    ),
    "MS563": ("short-retention", "A topic keeps its records for less time than an outage may last."),
    "MS564": ("made-anew", "A topic or table was deleted and made again since the checkpoint began."),
    "MS565": ("first-batch", "The first batch of a query would hold all of a large topic."),
    "MS566": (
        "no-such-offset",
        "Offsets or versions of the spec or a checkpoint are not there any more, or yet.",
    ),
    "MS567": ("no-right", "A right is missing that writing needs."),
    "MS568": (
        "columns-differ",
        "A table lacks a column of the query, or its type does not take the query's values.",
    ),
    "MS569": ("no-unique-index", "A table lacks the unique index that its key needs."),
    "MS570": (
        "foreign-folder",
        "A folder belongs to another kind of writer, whose readers would not see the files.",
    ),
    "MS571": ("foreign-checkpoint", "A checkpoint was started with other sources than the query has."),
    "MS572": ("record-limit", "Larger records may be sent than a topic takes."),
    "MS573": ("compacted-without-key", "Records without a key are written to a compacted topic."),
    "MS574": ("changed-in-place", "A table that is read as a stream has commits that change or delete rows."),
}

ASKED = frozenset(code for code in CODES if code.startswith(("MS56", "MS57")))
"""What only a check with `--connect` finds. A spec may allow these and give them a severity, as those of rules."""


def finding(
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
    """A finding whose name comes from the catalogue. Raises KeyError for a code that is not in it."""
    return Finding(code, CODES[code][0], severity, message, span, label, why, fix, edit, query)
