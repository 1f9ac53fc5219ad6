"""What the program of the example clickstream says of the events of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WATCH = Path(__file__).parents[2] / "examples" / "clickstream" / "watch.py"


def render_events(*events: dict[str, object]) -> list[str]:
    """Its lines for these events."""
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    result = subprocess.run(
        [sys.executable, str(WATCH)], input=lines, capture_output=True, text=True, timeout=100, check=True
    )
    return result.stdout.splitlines()


def test_a_start_is_told_with_name_id_and_run_id() -> None:
    began = {"event": "query_started", "query": "live", "id": "3f0c", "run_id": "77aa", "batch": None}

    assert render_events(began) == ["live begins from the beginning", "  id      3f0c", "  run id  77aa"]
    assert render_events({**began, "batch": 4})[0] == "live begins behind batch 4"


def test_a_batch_is_told_with_its_rate_and_the_size_of_the_state() -> None:
    batch = {
        "event": "batch_committed",
        "query": "live",
        "batch": 2,
        "rows_in": 0,
        "processed_rate": None,
        "state_rows": 12,
        "state_bytes": 2_500_000,
    }

    assert render_events(batch) == ["live batch 2: 0 rows, 0 a second; state 12 rows, 2.5 MB"]


def test_a_failure_is_told_with_its_cause_and_the_record_and_other_events_are_not() -> None:
    failed = {
        "event": "query_failed",
        "query": "live",
        "cause": "defect",
        "reason": "Division by zero",
        "record": ["partition 1 of topic 'clicks', offset 941"],
        "fix": "mend it",
    }

    assert render_events({"event": "run_started"}, failed) == [
        "live failed (defect): Division by zero",
        "  fails by itself: partition 1 of topic 'clicks', offset 941",
        "  fix: mend it",
    ]
