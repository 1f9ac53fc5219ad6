"""Findings in each output format."""

from __future__ import annotations

import json
from dataclasses import replace
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.diagnostics.render import render
from millstream.diagnostics.spec_codes import CODES, build_finding

SPEC = """name: shop
sources:
  orders:
    rate: {}
views:
  per_minute:
    sql: |
      SELECT window(ts, '1 minute') AS minute,
             count(*) AS n

      FROM orders
"""
FOUND = Finding(
    code="MS201",
    name="missing-watermark",
    severity=Severity.ERROR,
    message="view 'per_minute' aggregates source 'orders', which has no watermark",
    span=Span("pipeline.yml", 11, 12, 11, 18),
    label="reads it here",
    why="without a watermark Spark keeps every group in the state store forever",
    fix="declare a watermark that says how late a row of 'orders' may be",
    edit=Edit("pipeline.yml", 3, ("    watermark: {event_time: ts, delay_threshold: 10 minutes}",)),
    query="per_minute",
)
TEXTS = {"pipeline.yml": SPEC}


def test_text_shows_place_reason_and_cure() -> None:
    assert render([FOUND], TEXTS) == (
        "error[MS201]: view 'per_minute' aggregates source 'orders', which has no watermark\n"
        "  --> pipeline.yml:11:12\n"
        "   |\n"
        "11 |       FROM orders\n"
        "   |            ^^^^^^ reads it here\n"
        "why:  without a watermark Spark keeps every group in the state store forever\n"
        "fix:  declare a watermark that says how late a row of 'orders' may be\n"
        " 4 +     watermark: {event_time: ts, delay_threshold: 10 minutes}\n"
        "see:  millstream explain MS201\n"
        "\n"
        "1 error\n"
    )


def test_nothing_to_say_is_nothing() -> None:
    assert render([], {}) == ""


def test_colour_comes_only_when_asked_for() -> None:
    assert "\x1b" not in render([FOUND], TEXTS)
    assert "\x1b[31;1merror[MS201]\x1b[0m" in render([FOUND], TEXTS, color=True)


def test_guarantees_stand_below_the_findings() -> None:
    item = {
        "query": "funnel",
        "sink": "delta lake/funnel",
        "guarantee": "exactly-once",
        "reasons": ["it merges"],
    }

    assert render([], {}, guarantees=[item]).splitlines() == [
        "query   sink               guarantee     weakest link",
        "funnel  delta lake/funnel  exactly-once  -",
    ]


def test_a_file_that_vanished_is_shown_without_its_line() -> None:
    text = render([FOUND], {})

    assert "--> pipeline.yml:11:12" in text
    assert "note: reads it here" in text


@pytest.mark.parametrize(
    ("line", "column", "end", "shown", "marks"),
    [
        ("\tx: 1", 2, 3, "    x: 1", "    ^"),
        ("日本: x", 1, 3, "日本: x", "^^^^"),
        ("日本: x", 5, 6, "日本: x", "      ^"),
        ("e\u0301: x", 5, 6, "e\u0301: x", "   ^"),
        ("a: \x1b]0;x", 4, 5, "a: \\x1b]0;x", "   ^^^^"),
        ("a: \u202ex", 4, 6, "a: \\x202ex", "   ^^^^^^^"),
        ("short", 90, 99, "short", "     ^"),
        ("password: hunter2", 1, 9, "password: *******", "^^^^^^^^"),
        ("fs.azure.account.key.lake: hunter2", 1, 2, "fs.azure.account.key.lake: *******", "^"),
        ("u: postgresql://me:hunter2@h/db", 1, 2, "u: postgresql://me:*******@h/db", "^"),
        ("u: postgresql://me:${PW}@h/db", 1, 2, "u: postgresql://me:${PW}@h/db", "^"),
    ],
)
def test_a_line_is_safe_to_print_and_its_marks_fit(
    line: str, column: int, end: int, shown: str, marks: str
) -> None:
    findings = replace(FOUND, span=Span("f", 1, column, 1, end), label="", edit=None)

    lines = render([findings], {"f": line}).splitlines()

    assert lines[3] == f" 1 | {shown}"
    assert lines[4] == f"   | {marks}"


def test_a_long_line_is_cut_around_its_mark() -> None:
    line = "x" * 500 + "HERE" + "y" * 500
    findings = replace(FOUND, span=Span("f", 1, 501, 1, 505), label="", edit=None)

    lines = render([findings], {"f": line}).splitlines()

    assert len(lines[3]) < 120
    assert lines[3][lines[4].index("^") : lines[4].rindex("^") + 1] == "HERE"
    assert lines[3].startswith(" 1 | …")
    assert lines[3].endswith("…")


def test_concise_is_one_line_a_finding() -> None:
    assert render([FOUND], TEXTS, "concise") == f"pipeline.yml:11:12: MS201 {FOUND.message}\n"
    assert render([replace(FOUND, span=None)], TEXTS, "concise") == f"MS201 {FOUND.message}\n"


def test_json_has_the_promised_keys() -> None:
    promise = {"query": "q", "sink": "s", "guarantee": "exactly-once", "reasons": ("a", "b")}

    data = json.loads(render([FOUND], TEXTS, "json", guarantees=[promise]))

    (item,) = data["findings"]
    assert {
        "code", "name", "severity", "message", "file", "line", "column", "why", "fix", "query",
    } <= set(item)  # fmt: skip
    assert (item["code"], item["severity"], item["file"], item["line"], item["column"]) == (
        "MS201",
        "error",
        "pipeline.yml",
        11,
        12,
    )
    assert data["guarantees"] == [{**promise, "reasons": ["a", "b"]}]


@pytest.mark.parametrize(
    "line", ['    url: "postgresql://etl:hunter2@db/shop"', "      FROM a JOIN b ON a.token = b.token"]
)
def test_programs_get_no_edit_whose_lines_would_be_masked(line: str) -> None:
    finding = replace(FOUND, edit=Edit("pipeline.yml", 3, ("    # first", line), 1))

    (item,) = json.loads(render([finding], TEXTS, "json"))["findings"]

    assert item["edit"] is None
    assert "fixes" not in sarif(finding)


def test_github_escapes_what_would_end_a_command() -> None:
    findings = replace(FOUND, message="100 %\nof: a, b", span=Span("a,b:c.yml", 1, 2, 1, 5), why="", fix="")

    assert render([findings], {}, "github") == (
        "::error title=MS201 missing-watermark,file=a%2Cb%3Ac.yml,line=1,col=2,endLine=1,endColumn=5"
        "::100 %25%0Aof: a, b\n"
    )


def sarif(found: Finding, text: str = SPEC) -> dict[str, object]:
    (result,) = json.loads(render([found], {"pipeline.yml": text}, "sarif"))["runs"][0]["results"]
    return result  # type: ignore[no-any-return]


def test_sarif_names_version_rule_place_and_fix() -> None:
    data = json.loads(render([FOUND], TEXTS, "sarif"))
    (run,) = data["runs"]
    (result,) = run["results"]

    assert data["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "MS201"
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 11,
        "startColumn": 12,
        "endLine": 11,
        "endColumn": 18,
    }
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]["startLine"] == 4


def test_a_fingerprint_stays_when_lines_are_added_above() -> None:
    finding = replace(FOUND, span=Span("pipeline.yml", 13, 12, 13, 18))

    assert sarif(finding, "# a\n# b\n" + SPEC)["partialFingerprints"] == sarif(FOUND)["partialFingerprints"]


def test_two_findings_on_equal_lines_have_two_fingerprints() -> None:
    text = "a: x\na: x\n"
    twice = [replace(FOUND, span=Span("pipeline.yml", line, 1, line, 2)) for line in (1, 2)]

    results = json.loads(render(twice, {"pipeline.yml": text}, "sarif"))["runs"][0]["results"]

    assert results[0]["partialFingerprints"] != results[1]["partialFingerprints"]


def test_each_code_of_the_catalogue_has_a_name_and_a_sentence() -> None:
    names = [name for name, _ in CODES.values()]

    assert len(set(names)) == len(names)
    assert all(summary.endswith(".") for _, summary in CODES.values())
    assert build_finding("MS002", "x").name == "unknown-key"


@settings(deadline=None)
@given(
    st.text(),
    st.integers(1, 9),
    st.integers(1, 300),
    st.integers(1, 9),
    st.integers(1, 300),
    st.text(max_size=20),
)
def test_any_place_in_any_text_is_rendered(
    text: str, line: int, column: int, down: int, end: int, words: str
) -> None:
    findings = replace(FOUND, span=Span("f", line, column, line + down - 1, end), message=words, label=words)

    for form in ("text", "concise", "json", "github", "sarif"):
        item = render([findings], {"f": text}, form)
        assert "\x1b" not in item
        assert form in ("json", "sarif") or all(
            category(char) not in ("Cc", "Cf", "Cs") or char == "\n" for char in item if form != "github"
        )
