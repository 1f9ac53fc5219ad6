"""Programs that read `run --json` find each event on its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.cli.run import run_output

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
