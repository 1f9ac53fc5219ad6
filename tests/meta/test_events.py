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
