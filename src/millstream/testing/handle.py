"""A query under test in Python: feed it, kill it, start it again, and say what must have come."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Span
from millstream.pipeline.document import Document
from millstream.spec.duration import Duration
from millstream.testing import said
from millstream.testing.case import Action, Advance, Crash, Expected, Feed, Outcome, Record, Restart, Step
from millstream.testing.ground import Ground
from millstream.testing.judge import differences
from millstream.testing.moments import moment
from millstream.testing.report import report
from millstream.testing.rows import RECORD, record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from millstream.pipeline.model import Pipeline
    from millstream.testing.case import Case, Fed, Played, Row
    from millstream.testing.stage import Stage


class QueryUnderTest:
    """One query, played a micro-batch at a time. `feed`, `crash`, `restart` and `advance` happen at once.

    `expect` holds what came since the last `expect` or `take` against what is wanted, and raises `AssertionError`
    with the whole story where it differs.
    """

    def __init__(self, stage: Stage, case: Case) -> None:
        self._stage, self._case = stage, case
        self._actions: list[Action] = []
        self._steps: list[Step] = []
        self._played: list[Played] = []

    def feed(
        self,
        rows: Mapping[str, Sequence[Any]] | None = None,
        /,
        *,
        crash: str | None = None,
        **named: Sequence[Any],
    ) -> None:
        """Let rows arrive, by source; one micro-batch reads them all.

        A row is a mapping of columns; for a source of messages it may be a `Record`, or `{"record": {…}}` as in a
        test file. With `crash` the run dies in that batch: `before_sink`, `after_sink` or the name of a sink.
        """
        given = {name: tuple(_fed(one) for one in items) for name, items in {**(rows or {}), **named}.items()}
        self._actions.append(Feed(given))
        if crash is not None:
            self._actions.append(Crash(crash))
        self._stage.feed(given, crash)

    def crash(self, at: str = "after_sink") -> None:
        """Let the run die in the newest batch at that point, and repeat it."""
        self._actions.append(Crash(at))
        self._stage.crash(at)

    def restart(self, pipeline: Pipeline | None = None) -> None:
        """End the run between two batches and start it again, with another pipeline where one is given."""
        self._actions.append(Restart(pipeline, "with another pipeline" if pipeline else ""))
        self._stage.restart(pipeline)

    def advance(self, by: timedelta | str) -> None:
        """Let the clock go on: a `timedelta`, or text like `10 minutes`."""
        length = by if isinstance(by, timedelta) else timedelta(microseconds=Duration(by).micros)
        self._actions.append(Advance(length))
        self._stage.advance(length)

    def expect(
        self,
        rows: Sequence[Row] | None = None,
        /,
        *,
        watermark: datetime | str | None = None,
        dropped: int | None = None,
        state: Mapping[str, int] | int | None = None,
        dead_letters: Sequence[Row] | int | None = None,
        error: str | None = None,
        **named: Sequence[Row],
    ) -> Played:
        """Hold what came against what is wanted; gives all that came.

        `rows` are those of the query; those of a view, source or sink are given by its name, and a view or source
        must be among the `watch` of the fixture. What is not said is not looked at.
        """
        wanted = {name: tuple(items) for name, items in named.items()}
        if rows is not None:
            wanted[""] = tuple(rows)
        letters = dead_letters if isinstance(dead_letters, int | None) else tuple(dead_letters)
        at = None if watermark is None else moment(watermark)
        return self._take(Expected(wanted, at, dropped, state, letters, error), _line())

    def take(self) -> Played:
        """All that came since the last `expect` or `take`: rows by name, watermark, dropped rows, state, letters.

        Raises `AssertionError` when the query failed.
        """
        return self._take(Expected(), _line())

    def close(self) -> None:
        """See that nothing failed since the last look."""
        if self._actions:
            self._take(Expected(), self._case.where.line)

    def _take(self, expected: Expected, line: int) -> Played:
        where = Span.point(self._case.where.file, line)
        step = Step(tuple(self._actions), expected, where)
        self._actions = []
        one = self._stage.played(step)
        one = replace(one, differences=differences(expected, one, self._case))
        self._steps.append(step)
        self._played.append(one)
        if one.differences:
            case = replace(self._case, steps=tuple(self._steps))
            raise AssertionError(report(Outcome(case, tuple(self._played), 0.0)))
        return one


def _fed(item: Any) -> Fed:
    """An item of a feed, with values as a test file has them."""
    if isinstance(item, Record):
        return item
    if set(item) == {RECORD}:
        ground = Ground(Document("", ""))
        made = record(ground, item[RECORD], ())
        if ground.findings:
            raise ValueError(ground.findings[0].message)
        return made
    return said.row(item)


def _line() -> int:
    """The line of the test that calls a method of this class."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return caller.f_lineno if caller else 1
