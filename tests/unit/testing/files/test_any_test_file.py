"""Whatever the text, loading it as a test file gives tests or findings, and every place lies in the file."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sweep
from millstream.diagnostics.render import render
from millstream.testing.files.loader import load_text
from millstream.testing.files.schema import CaseForm, RecordForm, StepForm

SPEC = """\
pipeline:
  name: a
  sources:
    s: {kafka: {bootstrap_servers: h, subscribe: s}, schema: {a: int, b: "array<struct<c: decimal(5,2)>>"}}
    p: {parquet: x, schema: {a: int}, static: true}
  queries: {s: {to: {console: {}}}}
"""
KEYS = [
    *CaseForm.model_fields,
    *StepForm.model_fields,
    *RecordForm.model_fields,
    "s",
    "p",
    "record",
    "a",
    "b",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["${X}", "${x}", "$$", "10 seconds", "restart", "after_sink", "2026-01-01 12:00:00", "s"]
    ),
)
NAMES = st.one_of(st.sampled_from(KEYS), st.text(max_size=5))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=30,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "x", "record"]), TREES, max_size=3), max_size=3)
FED = st.dictionaries(st.sampled_from(["s", "p", "q"]), ROWS | TREES, max_size=2)
STEPS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            name: FED | TREES if name in ("feed", "expect") else TREES for name in StepForm.model_fields
        },
    )
    | TREES,
    max_size=3,
)
CASES = st.fixed_dictionaries(
    {"steps": STEPS | TREES},
    optional={
        name: ROWS | TREES if name == "table" else FED | TREES
        for name in CaseForm.model_fields
        if name not in ("steps", "query")
    },
)


def load(text: str) -> None:
    suite = load_text("t.yml", text, Path("/nowhere/t.yml"), lambda _: {})

    assert suite.cases or suite.has_errors
    lines = text.count("\n") + text.count("\r") + 1
    for finding in suite.findings:
        assert finding.message
        if finding.span:
            assert finding.span.file == "t.yml"
            assert 1 <= finding.span.line <= finding.span.end_line <= lines
    render(suite.findings, suite.texts)


@given(st.text() | st.text(alphabet="abk:{}[]-|>&*!#'\"\\$ \n\r\t,?%@`.0é\u2028", max_size=80))
@example("")
@example("tests: {a: &a {steps: [*a]}}")
@example("tests: " + "[" * 60)
@settings(deadline=None)
def test_any_text_gives_tests_or_findings(text: str) -> None:
    load(text)


@given(st.dictionaries(st.text(min_size=1, max_size=5), CASES | TREES, max_size=3))
@settings(max_examples=sweep.size(60, 150, "MILLSTREAM_EXAMPLES"), deadline=None)
def test_any_tree_gives_tests_or_findings(tests: object) -> None:
    load(SPEC + yaml.safe_dump({"tests": tests}, allow_unicode=True))
