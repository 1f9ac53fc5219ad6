"""Programs that read `run --json` find each event on its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.cli.run import run_output
from millstream.engine.events.event_bus import Event
from millstream.engine.events.event_messages import format_event

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_of_events_names_every_event_that_a_run_tells(root: Path) -> None:
    names = {
        name
        for folder in ("engine", "cli")
        for file in (root / "src/millstream" / folder).rglob("*.py")
        for name in re.findall(r"events\.emit\(\s*\"(\w+)\"", file.read_text(encoding="utf-8"))
    } - run_output._QUIET
    page = (root / "docs/reference/events.md").read_text(encoding="utf-8")

    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_a_run_has_every_event_that_the_page_names(root: Path) -> None:
    names = {
        name
        for folder in ("engine", "cli")
        for file in (root / "src/millstream" / folder).rglob("*.py")
        for name in re.findall(r"emit\(\s*\"(\w+)\"", file.read_text(encoding="utf-8"))
    }
    page = (root / "docs/reference/events.md").read_text(encoding="utf-8")
    table = page.partition("\n`batch_committed` has:\n")[0]
    documented = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)

    assert "run_stopped" in documented
    assert sorted(set(documented) - names) == []


def test_the_page_of_the_live_pages_data_has_the_texts_of_events(root: Path) -> None:
    page = (root / "docs/reference/page-api.md").read_text(encoding="utf-8")
    batch = {
        "batch": 12,
        "rows_in": 2011,
        "rows_out": 12,
        "late_rows": 0,
        "input_rate": 402.1,
        "duration_ms": {"triggerExecution": 1600},
    }

    assert f'"{format_event(Event("dead_letter", "funnel", {"records": 2, "batch": 11}))}"' in page
    assert f'"{format_event(Event("batch_committed", "funnel", batch))}"' in page
