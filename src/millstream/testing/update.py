"""Rewrite what a test expects to what came, in its file, and nothing else of the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.pipeline.document import read
from millstream.testing.cells import plain
from millstream.testing.expectations import LETTER
from millstream.testing.judge import by_letter, by_value, paired
from millstream.testing.moments import written
from millstream.testing.patching import Change, Unchangeable, Writing, changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.pipeline.document import Path
    from millstream.testing.case import Case, Played, Row
    from millstream.testing.judge import Same


@dataclass
class Updated:
    """A file's text with expectations rewritten; `steps` counts them, `left` says what could not be, and why."""

    text: str
    steps: int = 0
    left: list[str] = field(default_factory=list)


def updated(name: str, text: str, played: Sequence[tuple[Case, Sequence[Played]]]) -> Updated:
    """The text of a test file with the expectations of these tests as they came out."""
    document = read(name, text)
    writing = Writing(document)
    found = Updated(text)
    changes: list[Change] = []
    for case, steps in played:
        path = ("tests", case.name, "steps")
        if path not in document.values:
            if any(one.differences for one in steps):
                found.left.append(f"'{case.name}' comes from a table, whose rows share what they expect")
            continue
        for number, one in enumerate(steps):
            if not one.differences:
                continue
            here = (*path, number)
            said = document.data["tests"][case.name]["steps"][number]
            try:
                made = _step(writing, here, said, one, case)
            except Unchangeable as why:
                found.left.append(f"'{case.name}', step {number + 1}: {why}")
                continue
            if made:
                changes += made
                found.steps += 1
            if any(other.what == "error" for other in one.differences):
                found.left.append(f"'{case.name}', step {number + 1}: an error is for a person to judge")
    found.text = changed(text, changes)
    return found


def _step(writing: Writing, path: Path, said: Mapping[str, Any], played: Played, case: Case) -> list[Change]:
    """The changes of one step."""
    expected, found = played.step.expected, []
    same = by_value(case.tolerance)
    for name, rows in expected.rows.items():
        place = (*path, "expect", name) if name else (*path, "expect")
        found += _rows(writing, place, rows, played.rows.get(name, ()), same)
    if expected.watermark is not None and played.watermark not in (None, expected.watermark):
        found.append(writing.put((*path, "expect_watermark"), written(played.watermark)))
    if expected.dropped not in (None, played.dropped):
        found.append(writing.put((*path, "expect_dropped"), played.dropped))
    place = (*path, "expect_state")
    if isinstance(expected.state, int):
        if expected.state != (total := sum(played.state.values())):
            found.append(writing.put(place, total))
    elif expected.state is not None:
        for operator, many in expected.state.items():
            if operator not in played.state:
                raise Unchangeable(
                    f"there is no operator '{operator}'; there are {', '.join(played.state) or 'none'}"
                )
            if played.state[operator] != many:
                found.append(writing.put((*place, operator), played.state[operator]))
    place = (*path, "expect_dead_letters")
    if isinstance(expected.letters, int):
        if expected.letters != len(played.letters):
            found.append(writing.put(place, len(played.letters)))
    elif expected.letters is not None:
        letters = [{name: one[name] for name in LETTER if name in one} for one in played.letters]
        found += _rows(writing, place, expected.letters, letters, by_letter)
    return found if isinstance(said, dict) else []


def _rows(
    writing: Writing, path: Path, wanted: Sequence[Row], got: Sequence[Row], same: Same
) -> list[Change]:
    """The changes of one list of rows: cells where a row stays, rows that go, rows that come."""
    found = paired(wanted, got, same)
    if found.whole:
        return []
    small = [{name.lower(): value for name, value in row.items()} for row in got]
    cells: dict[tuple[int, str], Any] = {}
    gone, come = list(found.missing), list(found.surplus)
    for one, other in found.unlike:
        row = small[other]
        if any(name.lower() not in row for name in wanted[one]):
            # A column that is not there any more: the row is written with those that are.
            gone.append(one)
            come.append(other)
            continue
        cells.update(
            {
                (one, name): plain(row[name.lower()])
                for name, value in wanted[one].items()
                if not same(name, value, row[name.lower()])
            }
        )
    columns = list(dict.fromkeys(name for row in wanted for name in row))
    known = [name for name in columns if any(name.lower() in row for row in small)]
    rows = [
        {name: plain(small[number].get(name.lower())) for name in known}
        if known
        else {name: plain(value) for name, value in got[number].items()}
        for number in sorted(come)
    ]
    return writing.rows(path, cells, sorted(gone), rows)
