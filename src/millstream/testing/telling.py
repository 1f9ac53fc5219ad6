"""What became of a shuffled case, in words for a person and as data for a program."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from textwrap import indent
from typing import TYPE_CHECKING, Any

from millstream.testing import said
from millstream.testing.keeping import kept
from millstream.testing.moments import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.testing.held import Gap, Reading
    from millstream.testing.shuffle import Dropped, Shuffled, Wrong
    from millstream.testing.splits import Item, Split

# Rows that the watermark dropped, and rows of a difference: so many are told, the others are counted.
SHOWN = 10
_LONGEST = 100


def headline(found: Shuffled) -> str:
    """The outcome in one sentence."""
    if found.skipped is not None or found.fault is not None:
        return str(found.skipped or found.fault)
    if found.wrong is None:
        told = f"{found.splits} splits into batches end with the batch answer"
    elif found.wrong.tried.fault is not None:
        told = (
            f"split {found.wrong.number} of {found.asked} ends the query: {_first(found.wrong.tried.fault)}"
        )
    else:
        told = f"split {found.wrong.number} of {found.asked} does not end with the batch answer"
    return f"{told} (seed {found.seed})"


def lines(found: Shuffled, items: Sequence[Item], own: Mapping[str, Any]) -> Iterator[str]:
    """All of it as text, below the outcome. `own` is the test as its file has it."""
    by_number = {one.number: one for one in items}
    if found.wrong is not None:
        yield from _wrong(found, found.wrong, by_number)
        yield ""
        yield "keep it as a test:"
        yield from indent(_kept(found, found.wrong, items, own), "  ").splitlines()
    if found.dropped:
        yield "the watermark drops rows in some splits, as it must; there the answer is the one without them:"
        for one in found.dropped[:SHOWN]:
            yield from _dropped(one, by_number)
        if (more := len(found.dropped) - SHOWN) > 0:
            yield f"  and {more} rows more"
    if found.again:
        yield (
            f"in {found.again} splits a repeated row comes through: the watermark has passed all that its key is "
            "remembered for"
        )
    yield from (f"note: {note}" for note in found.notes)


def as_data(found: Shuffled, items: Sequence[Item], own: Mapping[str, Any]) -> dict[str, Any]:
    """All of it for a program."""
    by_number = {one.number: one for one in items}
    data: dict[str, Any] = {
        "seed": found.seed,
        "asked": found.asked,
        "splits": found.splits,
        "passed": found.passed,
        "skipped": found.skipped,
        "fault": found.fault,
        "dropped": [
            {
                "source": by_number[one.late.item].source,
                "row": said.fed(by_number[one.late.item].fed),
                "event_time": moment(one.late.time),
                "watermark": moment(one.late.watermark),
                "moved_by": None if one.late.moved_by is None else said.fed(by_number[one.late.moved_by].fed),
                "split": one.split,
                "splits": one.times,
            }
            for one in found.dropped
        ],
        "repeated_rows_let_through": found.again,
        "notes": list(found.notes),
    }
    if (wrong := found.wrong) is not None:
        data["wrong"] = {
            "split": wrong.number,
            "drawn": _parts(wrong.first, by_number),
            "batches": [
                {**part, "watermark": None if mark is None else written(mark)}
                for part, mark in zip(_parts(wrong.tried.split, by_number), _marks(wrong), strict=True)
            ],
            "smallest": wrong.complete,
            "in_one_batch_too": wrong.alone,
            "fault": wrong.tried.fault,
            "differences": [
                {
                    "sink": reading.sink,
                    "held": reading.told(),
                    "missing": [said.row(one) for one in gap.missing],
                    "surplus": [said.row(one) for one in gap.surplus],
                    "changed": [
                        {"answer": said.row(wanted), "held": said.row(got)} for wanted, got in gap.changed
                    ],
                }
                for reading, gap in wrong.tried.gaps
            ],
            "test": _kept(found, wrong, items, own),
        }
    return data


def _kept(found: Shuffled, wrong: Wrong, items: Sequence[Item], own: Mapping[str, Any]) -> str:
    return kept(found.case, items, wrong.tried, own, expecting=not (wrong.alone and found.strange))


def moment(micros: int) -> str:
    """A time in microseconds since 1970, as a test file writes it."""
    return written(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))


def _wrong(found: Shuffled, wrong: Wrong, items: Mapping[int, Item]) -> Iterator[str]:
    """The split as a table of its batches, and what differs."""
    split = wrong.tried.split
    rows = sum(len(part.items) for part in split)
    tale = (
        "as small as it gets" if wrong.complete else f"after {wrong.tries} tries; a smaller one may fail too"
    )
    yield f"{len(split)} batches of {rows} rows, {tale}:"
    table = [["batch", "", "rows", "watermark after it"]]
    for number, (part, mark) in enumerate(zip(split, _marks(wrong), strict=True), start=1):
        told = [*(["restart"] if part.restart else []), *([f"crash {part.crash}"] if part.crash else [])]
        for at, item in enumerate(part.items):
            last = at == len(part.items) - 1
            table.append(
                [
                    "" if at else str(number),
                    "" if at else ", ".join(told),
                    _item(items[item]),
                    written(mark) if last and mark is not None else "",
                ]
            )
    yield from (f"  {line}" for line in _aligned(table))
    if wrong.tried.fault is not None:
        yield f"the query ends: {_first(wrong.tried.fault)}"
    for reading, gap in wrong.tried.gaps:
        yield from _gap(reading, gap)
    yield _cause(found, wrong)


def _gap(reading: Reading, gap: Gap) -> Iterator[str]:
    yield f"{reading.sink} ({reading.told()}):"
    table = [["batch answer", "after these batches"]]
    table += [[_row(wanted), _row(got)] for wanted, got in gap.changed[:SHOWN]]
    table += [[_row(one), "-"] for one in gap.missing[:SHOWN]]
    table += [["-", _row(one)] for one in gap.surplus[:SHOWN]]
    yield from (f"  {line}" for line in _aligned(table))
    parts = (gap.changed, gap.missing, gap.surplus)
    if more := sum(max(0, len(one) - SHOWN) for one in parts):
        yield f"  and {more} rows more"


def _cause(found: Shuffled, wrong: Wrong) -> str:
    """What is known of why."""
    strange = ", ".join(dict.fromkeys(one.text for one in found.strange))
    told = f"; {strange} may give another value each time it is computed" if strange else ""
    for reading, gap in wrong.tried.gaps:
        if gap.shared:
            key = ", ".join(reading.key)
            return f"{key} does not tell rows of the answer apart: {reading.sink} keeps one of those that share it"
    if wrong.alone:
        return f"these rows in one batch differ too: what the pipeline gives does not depend on its rows alone{told}"
    return f"these rows in one batch end with the batch answer: it is the cut that matters{told}"


def _dropped(one: Dropped, items: Mapping[int, Item]) -> Iterator[str]:
    late = one.late
    others = f" and {one.times - 1} more" if one.times > 1 else ""
    yield f"  {_item(items[late.item])}"
    moved = "" if late.moved_by is None else f", moved there by {_item(items[late.moved_by])}"
    yield (
        f"    event time {moment(late.time)}; the watermark was at {moment(late.watermark)} in batch "
        f"{late.batch + 1} of split {one.split}{others}{moved}"
    )


def _marks(wrong: Wrong) -> list[datetime | None]:
    """Spark's watermark after each batch that was played."""
    found = [one.watermark for one in wrong.tried.outcome.played]
    return (found + [None] * len(wrong.tried.split))[: len(wrong.tried.split)]


def _parts(split: Split, items: Mapping[int, Item]) -> list[dict[str, Any]]:
    return [
        {
            "restart": part.restart,
            "crash": part.crash,
            "rows": [{"source": items[one].source, "row": said.fed(items[one].fed)} for one in part.items],
        }
        for part in split
    ]


def _item(item: Item) -> str:
    return f"{item.source} {_row(said.fed(item.fed))}"


def _row(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}: {_short(one)}" for name, one in said.row(row).items())
    return f"{{{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}}}"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _aligned(table: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for row in table:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True) if width)
        yield "  ".join(cells).rstrip()


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]
