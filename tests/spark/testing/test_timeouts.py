"""Time-outs fire for exactly the users they should: a hundred users of the example, against a simulation.

A timer of transformWithState fires as soon as the watermark, or the clock, has reached its time; a time-out of
applyInPandasWithState when the watermark has passed it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load_text
from millstream.testing.runner.execute import run_case
from millstream.testing.runner.failure_report import format_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[3] / "examples" / "user_status"
NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - as a test file writes times: in UTC, without a zone
HOUR, DELAY, SECOND = timedelta(hours=1), timedelta(minutes=10), timedelta(seconds=1)
REACHED, PASSED = timedelta(milliseconds=1), timedelta(0)
USERS = 100


@dataclass
class Simulated:
    """Who is known, until when; the rows that must come out of each step."""

    steps: list[dict[str, object]] = field(default_factory=list)
    until: dict[str, datetime] = field(default_factory=dict)
    gone: int = 0

    def step(self, acted: dict[str, datetime], heard: datetime | None, over: datetime, **more: str) -> None:
        """Users act, `heard` until their own time or until one for all; then those go whose time is before `over`."""
        rows = [{"user_id": user, "action": "work", "event_time": str(at)} for user, at in acted.items()]
        messages = [
            {"user_id": user, "status": "busy", "since": str(at)}
            for user, at in acted.items()
            # Who acts after an hour was gone, whether or not the watermark has come so far.
            if user not in self.until or (heard is None and at >= self.until[user])
        ]
        self.until |= {user: (heard or at) + HOUR for user, at in acted.items()}
        left = {user: until for user, until in self.until.items() if until < over}
        messages += [{"user_id": user, "status": "gone", "since": str(until)} for user, until in left.items()]
        self.until = {user: until for user, until in self.until.items() if user not in left}
        self.gone += len(left)
        self.steps.append({**more, "feed": {"user_actions": rows}, "expect": messages})

    def text(self, query: str, **more: str) -> str:
        """The test file."""
        return json.dumps({"tests": {"users": {"query": query, **more, "steps": self.steps}}})


def by_event_time(when: timedelta) -> Simulated:
    """Each step half an hour later; some users act again, some come back after they were gone."""
    random, simulated = Random(42), Simulated()
    names = [f"u{number:03}" for number in range(USERS)]
    for number in range(4):
        start = NOON + number * timedelta(minutes=30)
        newest = start + timedelta(minutes=20)
        some = names if not number else random.sample(names, USERS // 4)
        acted = {user: start + random.randrange(1200) * SECOND for user in some}
        # Two steps later the watermark stands at the end of their hour, or a second before or after it.
        acted |= {f"edge{number}{shift:+}": start + DELAY + shift * SECOND for shift in (-1, 0, 1)}
        acted[f"newest{number}"] = newest
        simulated.step(acted, None, newest - DELAY + when)
    return simulated


def by_clock() -> Simulated:
    """Each batch twenty minutes after the last one; the times of the actions count for nothing."""
    random, simulated = Random(7), Simulated()
    names = [f"u{number:03}" for number in range(USERS)]
    for number in range(5):
        now = NOON + number * timedelta(minutes=20)
        some = names if not number else random.sample(names, USERS // 4)
        acted = {user: NOON + timedelta(seconds=number) for user in some}
        simulated.step(acted, now, now + REACHED, **({"advance": "20 minutes"} if number else {}))
    return simulated


@pytest.mark.parametrize(
    ("query", "made", "more"),
    [
        ("user_status", by_event_time(REACHED), {}),
        ("status_older", by_event_time(PASSED), {}),
        ("status_by_clock", by_clock(), {"now": str(NOON)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_exactly_the_users_whose_hour_is_over_are_gone(
    spark: SparkSession, tmp_path: Path, query: str, made: Simulated, more: dict[str, str]
) -> None:
    text = made.text(query, **more)
    suite = load_text("users.yml", text, PROJECT / "tests" / "users.yml", lambda _: {})
    assert [finding.message for finding in suite.findings] == []
    (case,) = suite.cases

    outcome = run_case(spark, case, tmp_path)

    assert outcome.has_passed, format_report(outcome)[:3000]
    assert made.gone > USERS // 2
    assert made.until
