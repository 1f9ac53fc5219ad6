"""A test that failed, as text: all its steps, the one that differs, and what was wanted beside what came."""

from __future__ import annotations

import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING, assert_never

from millstream.diagnostics.snippet import printable, width
from millstream.diagnostics.text import Paint
from millstream.pipeline.loaded import shown
from millstream.spec.duration import Duration
from millstream.testing.case import Advance, Crash, Feed, Record, Restart
from millstream.testing.cells import cell
from millstream.testing.moments import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from millstream.testing.case import Action, Difference, Fed, Outcome, Played, Step

WIDTH = 100
_INDENT = 8
_BETWEEN = "   "
_WANTED, _GOT, _QUIET, _BOLD = "32", "31", "34", "1"
_NO_STEP = "-"


def report(outcome: Outcome, *, color: bool = False) -> str:
    """A failed outcome as lines of at most a hundred columns, where the names in it allow; no line end at its end."""
    return "\n".join(_lines(outcome, Paint(color=color)))


def headline(outcome: Outcome) -> str:
    """Why it failed, in one line."""
    if outcome.fault is not None:
        return printable(outcome.fault.partition("\n")[0])
    for number, played in enumerate(outcome.played, 1):
        if played.differences:
            whats = ", ".join(one.what for one in played.differences)
            return f"step {number}: {whats} not as expected"
    return ""


def place(outcome: Outcome) -> tuple[str, int]:
    """The file and line of a test."""
    return str(shown(outcome.case.file)), outcome.case.where.line


def _lines(outcome: Outcome, paint: Paint) -> Iterator[str]:
    case = outcome.case
    file, line = place(outcome)
    yield paint(printable(case.name), _BOLD)
    yield f"  {file}:{line}, query '{case.query}'"
    if outcome.fault is not None:
        yield ""
        yield from (f"  {printable(said)}" for said in outcome.fault.splitlines())
        return
    yield ""
    yield paint("     step  batch  watermark            what happens", _QUIET)
    for number, step in enumerate(case.steps, 1):
        played = outcome.played[number - 1] if number <= len(outcome.played) else None
        failed = played is not None and bool(played.differences)
        text = _cut(_step(number, step, played, failed=failed))
        yield paint(text, _GOT, _BOLD) if failed else text
        if played is None or not failed:
            continue
        yield f"{' ' * _INDENT}{file}:{step.where.line}"
        for difference in played.differences:
            yield ""
            yield from (f"{' ' * _INDENT}{one}".rstrip() for one in _difference(difference, paint))
        if number < len(case.steps):
            yield ""


def _step(number: int, step: Step, played: Played | None, *, failed: bool) -> str:
    """One line: its number, the batches it ran, the watermark after it, what happens in it."""
    batches = ",".join(map(str, played.batches)) if played and played.batches else _NO_STEP
    moment = _moment(played.watermark) if played else "not played"
    told = "; ".join(_action(action) for action in step.actions) or "expectations alone"
    return f"{'=>' if failed else '  '} {number:>6}  {batches:<5}  {moment:<19}  {told}"


def _moment(watermark: datetime | None) -> str:
    return written(watermark) if watermark else _NO_STEP


def _action(action: Action) -> str:
    """What happens, in a few words."""
    match action:
        case Feed():
            return "feed " + ", ".join(_fed(name, rows) for name, rows in action.rows.items())
        case Crash():
            return f"crash {action.at}"
        case Restart():
            return f"restart {action.told}".rstrip()
        case Advance():
            return f"advance {length(action.by)}"
        case _:
            assert_never(action)


def _fed(name: str, rows: Sequence[Fed]) -> str:
    if not rows:
        return f"{name} nothing"
    first = rows[0]
    if isinstance(first, Record):
        told = f"record {cell(first.value)}"
    else:
        told = "{" + ", ".join(f"{key}: {cell(value)}" for key, value in first.items()) + "}"
    return f"{name} {told}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")


def length(by: timedelta) -> str:
    """A length of time as a test file writes it."""
    millis = round(by.total_seconds() * 1000)
    for unit, many in (("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        if millis and millis % many == 0:
            return str(Duration(f"{millis // many} {unit}"))
    return str(Duration(f"{millis} milliseconds"))


def _difference(difference: Difference, paint: Paint) -> Iterator[str]:
    """What was wanted beside what came; below each other where both are too wide."""
    yield paint(f"{printable(difference.what)}:", _BOLD)
    widest = max((width(line) for line in difference.wanted), default=0)
    other = max((width(line) for line in difference.got), default=0)
    widest = max(widest, len("wanted"))
    if _INDENT + 2 + widest + len(_BETWEEN) + max(other, len("got")) > WIDTH:
        yield f"  {paint('wanted', _QUIET)}"
        yield from (f"    {paint(line, _WANTED)}" for line in _wrapped(difference.wanted))
        yield f"  {paint('got', _QUIET)}"
        yield from (f"    {paint(line, _GOT)}" for line in _wrapped(difference.got))
        return
    yield f"  {paint('wanted', _QUIET)}{' ' * (widest - len('wanted'))}{_BETWEEN}{paint('got', _QUIET)}"
    for left, right in zip_longest(difference.wanted, difference.got, fillvalue=""):
        gap = " " * (widest - width(left))
        differs = left != right
        yield (
            f"  {paint(left, _WANTED) if differs else left}{gap}{_BETWEEN}{paint(right, _GOT) if differs else right}"
        )


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Lines that fit below each other: an error of Spark's is a paragraph."""
    for line in lines:
        yield from textwrap.wrap(line, WIDTH - _INDENT - 4, subsequent_indent="  ") or [""]


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
