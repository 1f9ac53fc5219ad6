"""The Python API of a query under test: feed it, crash it, restart it, and check its output."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.finding import Span
from millstream.pipeline.load.document import YamlDocument
from millstream.spec.duration import Duration
from millstream.testing.files import serializer
from millstream.testing.files.parse_context import ParseContext
from millstream.testing.files.row_parser import RECORD, column_types, parse_record
from millstream.testing.model import Action, Advance, Crash, Expected, Feed, Outcome, Record, Restart, Step
from millstream.testing.runner.compare import find_differences
from millstream.testing.runner.failure_report import format_report
from millstream.testing.values.timestamps import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from millstream.pipeline.model import Pipeline
    from millstream.testing.harness.harness import Harness
    from millstream.testing.model import Case, Fed, Row, StepResult


class QueryUnderTest:
    """One query, run one micro-batch at a time. `feed`, `crash`, `restart` and `advance` take effect at once.

    `expect` compares the output since the last `expect` or `take` with the expected output. It raises
    `AssertionError` with a report of all steps if they differ.
    """

    def __init__(self, harness: Harness, case: Case) -> None:
        self._harness, self._case, self._pipeline = harness, case, case.pipeline
        self._actions: list[Action] = []
        self._steps: list[Step] = []
        self._results: list[StepResult] = []

    def feed(
        self,
        rows: Mapping[str, Sequence[Any]] | None = None,
        /,
        *,
        crash: str | None = None,
        **named: Sequence[Any],
    ) -> None:
        """Feed rows by source. One micro-batch reads them all.

        A row is a mapping of columns. For a message source it may be a `Record`, or `{"record": {…}}` as in a test
        file. With `crash`, the query crashes in that batch at `before_sink`, `after_sink` or the name of a sink.
        """
        rows_by_source = {
            name: tuple(self._parse_item(name, item) for item in items)
            for name, items in {**(rows or {}), **named}.items()
        }
        self._actions.append(Feed(rows_by_source))
        if crash is not None:
            self._actions.append(Crash(crash))
        self._harness.feed(rows_by_source, crash)

    def crash(self, at: str = "after_sink") -> None:
        """Crash the query in the newest batch at that point, and repeat the batch."""
        self._actions.append(Crash(at))
        self._harness.crash(at)

    def restart(self, pipeline: Pipeline | None = None) -> None:
        """Stop the query between two batches and start it again, with another pipeline if one is given."""
        self._pipeline = pipeline or self._pipeline
        self._actions.append(Restart(pipeline, "with another pipeline" if pipeline else ""))
        self._harness.restart(pipeline)

    def advance(self, by: timedelta | str) -> None:
        """Advance the clock by a `timedelta`, or by text like `10 minutes`."""
        length = by if isinstance(by, timedelta) else timedelta(microseconds=Duration(by).micros)
        self._actions.append(Advance(length))
        self._harness.advance(length)

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
    ) -> StepResult:
        """Compare the output with the expected output, and return all of the output.

        `rows` are the rows of the query. Rows of a view, source or sink are keywords by its name; a view, a source or
        a real sink must be in the `watch` argument of the fixture. Only the given arguments are checked.
        """
        expected_rows = {name: tuple(items) for name, items in named.items()}
        if rows is not None:
            expected_rows[""] = tuple(rows)
        expected_letters = dead_letters if isinstance(dead_letters, int | None) else tuple(dead_letters)
        expected_watermark = None if watermark is None else parse_timestamp(watermark)
        return self._take(
            Expected(expected_rows, expected_watermark, dropped, state, expected_letters, error),
            _caller_line(),
        )

    def take(self) -> StepResult:
        """Return the output since the last `expect` or `take`: rows by name, watermark, dropped rows, state, letters.

        Raises `AssertionError` if the query failed.
        """
        return self._take(Expected(), _caller_line())

    def close(self) -> None:
        """Check that nothing failed since the last `expect` or `take`."""
        if self._actions:
            self._take(Expected(), self._case.where.line)

    def _parse_item(self, source: str, item: Any) -> Fed:
        """Convert an item of the feed of a source to the values of a test file."""
        if isinstance(item, Record):
            return item
        entry = self._pipeline.sources.get(source)
        columns = column_types(entry) if entry else None
        if set(item) == {RECORD} and RECORD not in (columns or ()):
            ground = ParseContext(YamlDocument("", ""))
            message = parse_record(ground, item[RECORD], ())
            if ground.findings:
                raise ValueError(ground.findings[0].message)
            return message
        return serializer.serialize_row(item)

    def _take(self, expected: Expected, line: int) -> StepResult:
        span = Span.point(self._case.where.file, line)
        step = Step(tuple(self._actions), expected, span)
        self._actions = []
        result = self._harness.run_step(step)
        for name in expected.rows.keys() - result.rows.keys():
            raise InvalidInput(
                f"the rows of '{name}' are not collected",
                f"name a view, source or real sink when you open the query: watch=['{name}']",
            )
        self._steps.append(step)
        case = replace(self._case, steps=tuple(self._steps))
        result = replace(result, differences=find_differences(expected, result, case))
        self._results.append(result)
        if result.differences:
            raise AssertionError(format_report(Outcome(case, tuple(self._results), 0.0)))
        return result


def _caller_line() -> int:
    """Return the line of the test that calls a method of this class."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return caller.f_lineno if caller else 1
