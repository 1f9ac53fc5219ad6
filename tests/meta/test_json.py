"""Programs that read a command's JSON find each of its fields on a page."""

from __future__ import annotations

import importlib
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import pytest

from millstream.analysis.query.delivery_guarantee import GuaranteeReason, Promise
from millstream.backfill.batches import BatchOutcome, BatchReport
from millstream.backfill.report import BackfillReport, SinkOutcome
from millstream.cli.deadletter.text import dead_letter_json
from millstream.cli.main import COMMANDS, command_module
from millstream.connectors.api.dead_letters import DeadLetter
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.diagnostics.render import render
from millstream.diagnostics.spec_codes import build_finding
from millstream.engine.batch.table_diff import RowDifference
from millstream.spec.guarantee import Guarantee
from millstream.testing.runner.results import CaseOutcome, Result, format_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def samples(root: Path) -> list[dict[str, Any]]:
    """The objects that the page shows: a finding, a guarantee, a dead letter."""
    text = (root / "docs/reference/json.md").read_text(encoding="utf-8")
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


def _commands_with_json(command: click.Command, name: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for inner, item in command.commands.items():
            yield from _commands_with_json(item, f"{name} {inner}")
    elif any("--json" in option.opts for option in command.params):
        yield name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_names_every_command_that_prints_json(root: Path, name: str) -> None:
    page = (root / "docs/reference/json.md").read_text(encoding="utf-8")
    command: click.Command = importlib.import_module(command_module(name)).command

    spans = re.findall(r"`([^`\n]+)`", page)
    commands = [*_commands_with_json(command, name)]

    assert [item for item in commands if not any(f"{item} " in f"{span} " for span in spans)] == []


def test_a_finding_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    data = json.loads(render([build_finding("MS001", "no YAML")], {}, "json"))

    assert data["findings"][0].keys() == samples[0].keys()


def test_a_dead_letter_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    letter = DeadLetter("q", "s", "t", 0, 1, None, None, None, b"x", "why", 0, datetime.now(UTC))

    assert dead_letter_json(letter).keys() == samples[2].keys()


def test_a_guarantee_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    promise = Promise(
        "q", "s", Guarantee.EXACTLY_ONCE, (), GuaranteeReason("why"), (GuaranteeReason("while"),)
    )

    messages = promise.plain()

    assert messages.keys() == samples[1].keys()
    assert messages["weakest"].keys() == samples[1]["weakest"].keys()


def test_a_backfill_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    difference = RowDifference("different", {"since": "a"}, columns={"amount": ("99", "5")})
    report = BackfillReport("shop", [SinkOutcome("q", "s", EventTimeRange(), differences=[difference])])
    text = next(sample for sample in samples if "sinks" in sample)

    messages = report.to_json()

    assert messages.keys() == text.keys()
    assert messages["sinks"][0].keys() == text["sinks"][0].keys()
    assert messages["sinks"][0]["differences"][0].keys() == text["sinks"][0]["differences"][0].keys()


def test_a_backfill_of_batches_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    report = BatchReport("shop", "q", is_dry_run=False, outcomes=[BatchOutcome("postgres:orders", 5, 120)])
    text = next(sample for sample in samples if "batches" in sample)

    messages = report.to_json()

    assert messages.keys() == text.keys()
    assert messages["batches"][0].keys() == text["batches"][0].keys()


def test_a_test_has_the_fields_that_the_page_shows(samples: list[dict[str, Any]]) -> None:
    text = next(sample for sample in samples if "outcome" in sample)

    data = json.loads(format_json([Result("a", "t.yml", 1, CaseOutcome.PASSED, 0.1)]))

    assert data["tests"][0].keys() == text.keys()
    assert text["outcome"] in list(CaseOutcome)
