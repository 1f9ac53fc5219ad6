"""JUnit XML is valid, whatever the findings contain."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from millstream.diagnostics.finding import Finding, Severity, Span
from millstream.diagnostics.render import render


def build_finding(severity: Severity, message: str = "said") -> Finding:
    return Finding("MS201", "missing-watermark", severity, message, Span("p.yml", 3, 1, 3, 2), fix="do it")


def test_an_error_is_a_failure_and_a_warning_is_none() -> None:
    root = ET.fromstring(
        render([build_finding(Severity.ERROR), build_finding(Severity.WARNING)], {"p.yml": ""}, form="junit")
    )

    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    assert [case.find("failure") is not None for case in root.iter("testcase")] == [True, False]


def test_a_file_without_findings_passes() -> None:
    root = ET.fromstring(render([], {"p.yml": "", "views/a.sql": ""}, form="junit"))

    assert [case.get("classname") for case in root.iter("testcase")] == ["p.yml", "views/a.sql"]
    assert root.get("failures") == "0"


@given(st.text())
def test_any_message_gives_xml_that_can_be_read(message: str) -> None:
    text = render(
        [build_finding(Severity.ERROR, message), build_finding(Severity.INFO, message)], {}, form="junit"
    )

    assert len(list(ET.fromstring(text).iter("testcase"))) == 2


@given(st.text())
def test_an_annotation_is_one_line_whatever_is_said(message: str) -> None:
    text = render([build_finding(Severity.ERROR, message)], {}, form="github")

    assert text.count("\n") == 1
    assert not any(ord(char) < 32 for char in text[:-1])
