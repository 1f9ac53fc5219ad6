"""Programs that read a command's JSON find each of its fields on a page."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.guarantee import Promise, Reason
from millstream.backfill.report import Outcome, Report
from millstream.cli.letter import record
from millstream.connectors.cut import Cut
from millstream.connectors.letters import Letter
from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.render import render
from millstream.runtime.batch.differences import Difference
from millstream.spec.guarantee import Guarantee
from millstream.testing.results import Ending, Result, as_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def samples(root: Path) -> list[dict[str, Any]]:
    """The objects that the page shows: a finding, a guarantee, a dead letter."""
    text = (root / "docs/reference/json.md").read_text(encoding="utf-8")
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


def test_a_finding_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    told = json.loads(render([finding("MS001", "no YAML")], {}, "json"))

    assert told["findings"][0].keys() == samples[0].keys()


def test_a_dead_letter_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    letter = Letter("q", "s", "t", 0, 1, None, None, None, b"x", "why", 0, datetime.now(UTC))

    assert record(letter).keys() == samples[2].keys()


def test_a_guarantee_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    promise = Promise("q", "s", Guarantee.EXACTLY_ONCE, (), Reason("why"), (Reason("while"),))

    told = promise.plain()

    assert told.keys() == samples[1].keys()
    assert told["weakest"].keys() == samples[1]["weakest"].keys()


def test_a_backfill_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    one = Difference("different", {"since": "a"}, columns={"amount": ("99", "5")})
    report = Report("shop", [Outcome("q", "s", Cut(), differences=[one])])
    shown = next(sample for sample in samples if "sinks" in sample)

    told = report.to_json()

    assert told.keys() == shown.keys()
    assert told["sinks"][0].keys() == shown["sinks"][0].keys()
    assert told["sinks"][0]["differences"][0].keys() == shown["sinks"][0]["differences"][0].keys()


def test_a_test_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    shown = next(sample for sample in samples if "outcome" in sample)

    told = json.loads(as_json([Result("a", "t.yml", 1, Ending.PASSED, 0.1)]))

    assert told["tests"][0].keys() == shown.keys()
    assert shown["outcome"] in list(Ending)
