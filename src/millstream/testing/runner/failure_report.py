"""Format a failed test: all steps, the failed step, and expected next to actual values."""

from __future__ import annotations

import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING, assert_never

from millstream.diagnostics.snippet import display_width, escape_control
from millstream.diagnostics.text import Colours
from millstream.pipeline.load.loader import display_path
from millstream.spec.duration import Duration
from millstream.testing.model import Advance, Crash, Feed, Record, Restart
from millstream.testing.values.formatting import format_cell
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from millstream.testing.model import Action, Difference, Fed, Outcome, Step, StepResult

WIDTH = 100
_INDENT = 8
_BETWEEN = "   "
_WANTED, _GOT, _QUIET, _BOLD = "32", "31", "34", "1"
_NOTHING = "-"


def format_report(outcome: Outcome, *, color: bool = False) -> str:
    """Format a failed outcome in at most a hundred columns where names allow, without a final line end."""
    return "\n".join(_lines(outcome, Colours(color=color)))


def summarize_failure(outcome: Outcome) -> str:
    """Summarize in one line why the test failed."""
    if outcome.fault is not None:
        return escape_control(outcome.fault.partition("\n")[0])
    for number, result in enumerate(outcome.results, 1):
        if result.differences:
            subjects = ", ".join(difference.what for difference in result.differences)
            return f"step {number}: {subjects} not as expected"
    return ""


def locate_test(outcome: Outcome) -> tuple[str, int]:
    """Return the file and line of a test."""
    return str(display_path(outcome.case.file)), outcome.case.where.line


def _lines(outcome: Outcome, paint: Colours) -> Iterator[str]:
    case = outcome.case
    file, line = locate_test(outcome)
    yield paint(escape_control(case.name), _BOLD)
    yield f"  {file}:{line}, query '{case.query}'"
    if outcome.fault is not None:
        yield ""
        yield from (f"  {escape_control(line_of_fault)}" for line_of_fault in outcome.fault.splitlines())
        return
    yield ""
    yield paint("     step  batch  watermark            what happens", _QUIET)
    for number, step in enumerate(case.steps, 1):
        result = outcome.results[number - 1] if number <= len(outcome.results) else None
        has_failed = result is not None and bool(result.differences)
        text = _shorten(_format_step(number, step, result, has_failed=has_failed))
        yield paint(text, _GOT, _BOLD) if has_failed else text
        if result is None or not has_failed:
            continue
        yield f"{' ' * _INDENT}{file}:{step.where.line}"
        for difference in result.differences:
            yield ""
            yield from (
                f"{' ' * _INDENT}{line_of_difference}".rstrip()
                for line_of_difference in _format_difference(difference, paint)
            )
        if number < len(case.steps):
            yield ""


def _format_step(number: int, step: Step, result: StepResult | None, *, has_failed: bool) -> str:
    """Format one step as a line: its number, its batches, the watermark after it, and its actions."""
    batches = ",".join(map(str, result.batches)) if result and result.batches else _NOTHING
    moment = _format_watermark(result.watermark) if result else "not run"
    actions = "; ".join(_format_action(action) for action in step.actions) or "expectations only"
    return f"{'=>' if has_failed else '  '} {number:>6}  {batches:<5}  {moment:<19}  {actions}"


def _format_watermark(watermark: datetime | None) -> str:
    return format_timestamp(watermark) if watermark else _NOTHING


def _format_action(action: Action) -> str:
    """Summarize an action in a few words."""
    match action:
        case Feed():
            return "feed " + ", ".join(_format_feed(name, rows) for name, rows in action.rows.items())
        case Crash():
            return f"crash {action.at}"
        case Restart():
            return f"restart {action.description}".rstrip()
        case Advance():
            return f"advance {format_duration(action.by)}"
        case _:
            assert_never(action)


def _format_feed(name: str, rows: Sequence[Fed]) -> str:
    if not rows:
        return f"{name} nothing"
    first = rows[0]
    if isinstance(first, Record):
        first_item = f"record {format_cell(first.value)}"
    else:
        first_item = "{" + ", ".join(f"{key}: {format_cell(value)}" for key, value in first.items()) + "}"
    return f"{name} {first_item}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")


def format_duration(by: timedelta) -> str:
    """Format a duration as a test file writes it."""
    millis = round(by.total_seconds() * 1000)
    for unit, factor in (("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        if millis and millis % factor == 0:
            return str(Duration(f"{millis // factor} {unit}"))
    return str(Duration(f"{millis} milliseconds"))


def _format_difference(difference: Difference, paint: Colours) -> Iterator[str]:
    """Format expected next to actual lines, or one below the other if they are too wide."""
    yield paint(f"{escape_control(difference.what)}:", _BOLD)
    widest = max((display_width(line) for line in difference.expected), default=0)
    other = max((display_width(line) for line in difference.got), default=0)
    widest = max(widest, len("wanted"))
    if _INDENT + 2 + widest + len(_BETWEEN) + max(other, len("got")) > WIDTH:
        yield f"  {paint('wanted', _QUIET)}"
        yield from (f"    {paint(line, _WANTED)}" for line in _wrap(difference.expected))
        yield f"  {paint('got', _QUIET)}"
        yield from (f"    {paint(line, _GOT)}" for line in _wrap(difference.got))
        return
    yield f"  {paint('wanted', _QUIET)}{' ' * (widest - len('wanted'))}{_BETWEEN}{paint('got', _QUIET)}"
    for left, right in zip_longest(difference.expected, difference.got, fillvalue=""):
        gap = " " * (widest - display_width(left))
        differs = left != right
        yield (
            f"  {paint(left, _WANTED) if differs else left}{gap}{_BETWEEN}{paint(right, _GOT) if differs else right}"
        )


def _wrap(lines: Sequence[str]) -> Iterator[str]:
    """Wrap long lines, because an error message of Spark can be a whole paragraph."""
    for line in lines:
        yield from textwrap.wrap(line, WIDTH - _INDENT - 4, subsequent_indent="  ") or [""]


def _shorten(text: str) -> str:
    text = escape_control(text)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
