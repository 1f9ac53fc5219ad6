"""SARIF output follows the standard, with fingerprints that do not change when lines move."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.diagnostics.render import render

TEXT = "name: shop\nsources:\n  orders: {rate: {}}\nqueries:\n  orders: {to: {console: {}}}\n"
PLACED = Finding(
    code="MS201",
    name="missing-watermark",
    severity=Severity.ERROR,
    message="view 'n' aggregates source 'orders', which has no watermark",
    span=Span("a folder/pipeline.yml", 3, 3, 3, 9),
    why="without a watermark every group is kept",
    fix="say how late a row may be",
    edit=Edit("a folder/pipeline.yml", 2, ("  orders: {rate: {}, watermark: {}}",), 1),
)
BARE = Finding("MS115", "no-query", Severity.INFO, "the script starts no streaming query")

# SARIF 2.1.0, sections 3.13 to 3.58, as far as it is written here: a property of another name is refused.
MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
HELP = {
    "type": "object",
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "markdown": {"type": "string", "minLength": 1},
    },
    "additionalProperties": False,
}
REGION = {
    "type": "object",
    "properties": {
        name: {"type": "integer", "minimum": 1}
        for name in ("startLine", "startColumn", "endLine", "endColumn")
    },
    "required": ["startLine"],
    "additionalProperties": False,
}
ARTIFACT = {
    "type": "object",
    "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9%:/._~!$&'()*+,;=@-]+$"}},
    "required": ["uri"],
    "additionalProperties": False,
}


def of(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """An object of these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def many(of_what: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": of_what, "minItems": least}


RULE = of(
    {
        "id": {"type": "string", "pattern": r"^MS\d{3}$"},
        "name": {"type": "string"},
        "shortDescription": HELP,
        "fullDescription": HELP,
        "help": HELP,
    },
    "id",
)
CHANGE = of(
    {
        "artifactLocation": ARTIFACT,
        "replacements": many(of({"deletedRegion": REGION, "insertedContent": MESSAGE}, "deletedRegion"), 1),
    },
    "artifactLocation",
    "replacements",
)
RESULT = of(
    {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": MESSAGE,
        "locations": many(of({"physicalLocation": of({"artifactLocation": ARTIFACT, "region": REGION})})),
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "fixes": many(of({"description": MESSAGE, "artifactChanges": many(CHANGE, 1)}, "artifactChanges")),
    },
    "message",
)
DRIVER = of(
    {
        "name": {"const": "millstream"},
        "version": {"type": "string"},
        "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
        "rules": many(RULE),
    },
    "name",
)
RUN = of(
    {
        "tool": of({"driver": DRIVER}, "driver"),
        "invocations": many(of({"executionSuccessful": {"type": "boolean"}}, "executionSuccessful")),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": many(RESULT),
    },
    "tool",
)
SCHEMA = of(
    {"$schema": {"type": "string"}, "version": {"const": "2.1.0"}, "runs": many(RUN, 1)}, "version", "runs"
)


def log(findings: list[Finding], text: str = TEXT) -> dict[str, Any]:
    pages = {"MS201": "# missing-watermark (MS201)\n\nWhat happens.\n"}
    data: dict[str, Any] = json.loads(render(findings, {"a folder/pipeline.yml": text}, "sarif", pages=pages))
    return data


def fingerprint(text: str, line: int) -> str:
    span = Span("a folder/pipeline.yml", line, 3, line, 9)
    findings = Finding(PLACED.code, PLACED.name, PLACED.severity, PLACED.message, span)
    (result,) = log([findings], text)["runs"][0]["results"]
    (value,) = result["partialFingerprints"].values()
    return str(value)


@pytest.mark.parametrize("findings", [[], [PLACED], [BARE], [PLACED, BARE, PLACED]])
def test_the_log_has_the_shape_of_the_standard(findings: list[Finding]) -> None:
    jsonschema.validate(log(findings), SCHEMA)


def test_each_result_points_to_its_rule() -> None:
    run = log([PLACED, BARE])["runs"][0]

    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == ["MS201", "MS115"]


def test_a_rule_carries_its_page_as_help() -> None:
    (rule,) = log([PLACED])["runs"][0]["tool"]["driver"]["rules"]

    assert rule["fullDescription"]["text"] == "What happens."
    assert rule["help"]["markdown"].startswith("# missing-watermark")


def test_a_fingerprint_stays_when_lines_are_added_above() -> None:
    assert fingerprint(TEXT, 3) == fingerprint("# one\n# two\n" + TEXT, 5)


def test_a_fingerprint_changes_with_the_line_itself() -> None:
    assert fingerprint(TEXT, 3) != fingerprint(TEXT.replace("rate: {}", "rate: {rows_per_second: 1}"), 3)


def test_two_findings_of_one_line_have_two_fingerprints() -> None:
    results = log([PLACED, PLACED])["runs"][0]["results"]

    assert len({str(result["partialFingerprints"]) for result in results}) == 2


def test_an_edit_deletes_whole_lines_and_puts_others_in() -> None:
    (result,) = log([PLACED])["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"][0]["replacements"]

    assert change["deletedRegion"] == {"startLine": 3, "startColumn": 1, "endLine": 4, "endColumn": 1}
    assert change["insertedContent"]["text"] == "  orders: {rate: {}, watermark: {}}\n"


def test_a_deletion_of_the_last_line_stays_inside_of_the_file() -> None:
    (result,) = log([PLACED], "a\nb\n  orders")["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"][0]["replacements"]

    assert change["deletedRegion"] == {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 9}
