"""A query under test in Python, on a stage that only notes what it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.finding import Span
from millstream.pipeline.load.loader import load_text
from millstream.testing.model import Advance, Case, Crash, Feed, Record, Restart, StepResult
from millstream.testing.pytest_fixture import QueryUnderTest

if TYPE_CHECKING:
    from millstream.testing.model import Step

SPEC = """
name: a
sources: {s: {rate: {}}, lines: {json: data, schema: {record: string}}}
queries: {q: {from: s, to: {console: {}}}}
"""
LATER_SPEC = """
name: a
sources: {s: {rate: {}}}
views: {w: SELECT value AS n FROM s}
queries: {q: {from: w, to: {console: {}}}}
"""


@dataclass
class Noted:
    """A stage that gives the same row for each step."""

    asked: list[Any] = field(default_factory=list)
    error: str | None = None

    def feed(self, rows: Any, crash: str | None = None) -> None:
        self.asked.append(("feed", rows, crash))

    def crash(self, at: str) -> None:
        self.asked.append(("crash", at))

    def restart(self, pipeline: Any = None) -> None:
        self.asked.append(("restart", pipeline))

    def advance(self, by: timedelta) -> None:
        self.asked.append(("advance", by))

    def run_step(self, step: Step) -> StepResult:
        return StepResult(step, (0,), None, {"": ({"n": 1},), "w": ({"n": 1},)}, dropped=2, error=self.error)


@pytest.fixture
def stage() -> Noted:
    return Noted()


@pytest.fixture
def query(stage: Noted) -> QueryUnderTest:
    pipeline = load_text("pipeline.yml", SPEC, Path(), {}).pipeline
    assert pipeline is not None
    case = Case("test_it", pipeline, "q", (), Path("test_a.py"), Span.point("test_a.py", 3))
    return QueryUnderTest(stage, case)  # type: ignore[arg-type]


def test_what_is_asked_happens_at_once_and_in_order(query: QueryUnderTest, stage: Noted) -> None:
    query.feed(
        s=[{"at": datetime(2026, 1, 1, tzinfo=UTC)}, {"record": {"value": "x", "key": "k"}}],
        crash="after_sink",
    )
    query.crash("before_sink")
    query.restart()
    query.advance("10 minutes")

    records = ({"at": "2026-01-01 00:00:00"}, Record(b"x", b"k"))
    assert stage.asked == [
        ("feed", {"s": records}, "after_sink"),
        ("crash", "before_sink"),
        ("restart", None),
        ("advance", timedelta(minutes=10)),
    ]
    kinds = [type(action) for action in query.take().step.actions]
    assert kinds == [Feed, Crash, Crash, Restart, Advance]


def test_a_column_named_record_is_a_column(query: QueryUnderTest, stage: Noted) -> None:
    query.feed(lines=[{"record": "x"}])

    assert stage.asked == [("feed", {"lines": ({"record": "x"},)}, None)]


def test_what_is_as_expected_is_given_back(query: QueryUnderTest) -> None:
    assert query.expect([{"n": 1}], dropped=2).rows[""] == ({"n": 1},)


def test_a_difference_is_told_with_all_steps_and_the_line(query: QueryUnderTest) -> None:
    query.feed(s=[{"value": 1}])
    query.take()
    query.feed(s=[{"value": 2}])

    with pytest.raises(AssertionError) as failed:
        query.expect([{"n": 7}], dropped=0)

    lines = str(failed.value).splitlines()
    assert lines[:2] == ["test_it", "  test_a.py:3, query 'q'"]
    assert [line[:9] for line in lines if "feed s" in line] == ["        1", "=>      2"]
    assert any("*7" in line and "*1" in line for line in lines)


def test_rows_of_a_view_of_a_later_pipeline_are_named_after_it(query: QueryUnderTest) -> None:
    later = load_text("pipeline.yml", LATER_SPEC, Path(), {}).pipeline
    query.restart(later)

    with pytest.raises(AssertionError, match="rows of view 'w'"):
        query.expect(w=[{"n": 7}])


def test_an_error_that_nobody_looked_at_fails_the_test(query: QueryUnderTest, stage: Noted) -> None:
    stage.error = "cannot divide"
    query.feed(s=[{"value": 0}])

    with pytest.raises(AssertionError, match="cannot divide"):
        query.close()


def test_an_expected_error_is_none_to_the_end(query: QueryUnderTest, stage: Noted) -> None:
    stage.error = "cannot divide"
    query.feed(s=[{"value": 0}])
    query.expect(error="divide")

    query.close()


def test_a_record_that_is_none_is_refused(query: QueryUnderTest) -> None:
    with pytest.raises(ValueError, match="a record has no key 'valu'"):
        query.feed(s=[{"record": {"valu": "x"}}])
