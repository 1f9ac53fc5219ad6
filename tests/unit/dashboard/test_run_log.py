"""A run on disk: read as it was written, bounded, and none the worse for a crash."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from millstream.dashboard.run_log import (
    RunLog,
    delete_old_runs,
    list_runs,
    read_events,
    read_last_events,
    read_lines,
)
from millstream.dashboard.state.time_series import MOST, SHOWN, Series, plot_point
from millstream.engine.events.event_bus import Event
from unit.dashboard.conftest import at, batch, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Opened = Callable[..., RunLog]

DAY = 10 * 86_400
"""Batches of a day of ten queries at one a second."""


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Makes logs that are closed when the test is over."""
    with ExitStack() as exit_stack:

        def log(*given: Any, **more: Any) -> RunLog:
            run_log = RunLog(*given, **more)
            exit_stack.callback(run_log.close)
            return run_log

        yield log


def line(event: Event, number: int) -> str:
    return f'{event.to_json()[:-1]}, "n": {number}}}'


def test_events_come_back_as_they_were_written_over_several_segments(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run", segment=2000)
    events = [batch(number, number) for number in range(20)]

    for number, event in enumerate(events, 1):
        log.write(line(event, number))

    assert len(list((tmp_path / "run").glob("*.gz"))) == 3
    assert list(read_events(tmp_path / "run")) == list(enumerate(events, 1))


def test_a_line_that_a_crash_has_torn_is_left_out(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run")
    log.write(line(batch(0, 1), 1))
    log.close()
    with (tmp_path / "run/000001.jsonl").open("a") as file:
        file.write('{"event": "batch_comm')

    assert [event.data["batch"] for _, event in read_events(tmp_path / "run")] == [0]


def test_a_segment_that_is_there_packed_and_unpacked_is_read_once(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run", segment=1)
    log.write(line(batch(0, 1), 1))
    (tmp_path / "run/000001.jsonl").write_text(line(batch(0, 1), 1) + "\n")

    assert len(list(read_events(tmp_path / "run"))) == 1


def test_a_log_stays_below_its_bound_and_loses_batches_before_other_events(
    tmp_path: Path, opened: Opened
) -> None:
    log = opened(tmp_path / "run", segment=20_000, most=20_000)
    chance = random.Random(1)
    number = 0
    for second in range(3000):
        number += 1
        log.write(line(batch(second, second, rows_in=chance.randrange(10**9)), number))
        if second % 100 == 0:
            number += 1
            log.write(line(Event("retry", "funnel", {"reason": "away"}, at(second)), number))

    packed = sum(file.stat().st_size for file in (tmp_path / "run").glob("*.gz"))
    events = [event for _, event in read_events(tmp_path / "run")]
    share = sum(event.event == "batch_committed" for event in events) / 3000
    total = sum(event.event == "retry" for event in events) / 30
    assert packed <= 20_000
    assert events[0].data["batch"] == 0
    assert events[-1].data["batch"] == 2999
    assert share < total


def test_a_day_of_ten_queries_stays_below_200_megabytes(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run", segment=1_000_000)
    chance = random.Random(1)
    offsets = {str(partition): 10**6 for partition in range(4)}
    output = 4000
    for number in range(output):
        offsets = {partition: offset + chance.randrange(200) for partition, offset in offsets.items()}
        phases = {
            name: chance.randrange(2000)
            for name in ("addBatch", "latestOffset", "queryPlanning", "walCommit")
        }
        source = {"description": "KafkaV2[Subscribe[clicks]]", "endOffset": {"clicks": offsets}}
        event = batch(
            number,
            number,
            input_rate=chance.randrange(10**6) / 10,
            processed_rate=chance.randrange(10**6) / 10,
            duration_ms={**phases, "triggerExecution": sum(phases.values())},
            newest=at(number),
            watermark=at(number - 300),
            state_rows=chance.randrange(10**6),
            sources=[{**source, "startOffset": {"clicks": offsets}, "latestOffset": {"clicks": offsets}}] * 2,
        )
        log.write(line(event, number + 1))

    packed = [file.stat().st_size for file in (tmp_path / "run").glob("*.gz")]
    lines = sum(len(list(read_lines(file))) for file in (tmp_path / "run").glob("*.gz"))
    assert lines > 2000
    assert sum(packed) / lines * DAY < 200_000_000


def test_the_points_of_a_day_are_a_few_thousand_and_densest_at_the_end() -> None:
    series = Series()
    for number in range(86_400):
        series.add(plot_point(float(number), batch(number, 0).data))

    messages = series.as_json(0)

    assert len(series.points) <= MOST
    assert len(messages["time"]) <= SHOWN
    assert messages["time"][-1] == 86_399
    assert messages["time"] == sorted(messages["time"])
    assert len(series.as_json(86_399 - 600)["time"]) == 601


def test_past_runs_tell_how_they_ended_the_latest_first(tmp_path: Path, opened: Opened) -> None:
    for name, last in (("a", 0), ("b", 1), ("c", None)):
        log = opened(tmp_path / name)
        log.write(line(Event("described", "", {"pipeline": "shop"}, at(0)), 1))
        if last is not None:
            log.write(line(Event("run_stopped", "", {"exit_code": last}, at(9)), 2))
        log.close()
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    (tmp_path / "e/000001.jsonl").write_text("no json\n")

    runs = list_runs(tmp_path)

    assert [(item.id, item.exit_code, item.ended) for item in runs] == [
        ("c", None, None),
        ("b", 1, at(9)),
        ("a", 0, at(9)),
    ]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(line(batch(0, 5, sources=[{"description": "x" * 100_000}]), 3) + "\n", id="long"),
        pytest.param('{"event": "batch_comm', id="torn"),
        pytest.param('{"event": "batch_committed", "sources": "' + "x" * 100_000, id="long and torn"),
        pytest.param("no json\n", id="no event"),
    ],
)
def test_a_run_that_was_killed_is_listed_whatever_its_last_line(
    tmp_path: Path, opened: Opened, last: str
) -> None:
    log = opened(tmp_path / "run")
    log.write(line(Event("described", "", {"pipeline": "shop"}, at(0)), 1))
    log.write(line(batch(0, 4), 2))
    log.close()
    with (tmp_path / "run/000001.jsonl").open("a") as file:
        file.write(last)

    assert [(run.pipeline, run.ended, run.exit_code) for run in list_runs(tmp_path)] == [("shop", None, None)]


def test_a_run_has_ended_also_if_the_line_before_its_end_is_long(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run")
    log.write(line(Event("described", "", {"pipeline": "shop"}, at(0)), 1))
    log.write(line(batch(0, 4, sources=[{"description": "x" * 100_000}]), 2))
    log.write(line(Event("run_stopped", "", {"exit_code": 0}, at(9)), 3))
    log.close()

    assert [(run.ended, run.exit_code) for run in list_runs(tmp_path)] == [(at(9), 0)]


def test_only_the_latest_runs_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"2026030{number}").mkdir()

    delete_old_runs(tmp_path, keep=2)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["20260303", "20260304"]


def test_a_run_whose_log_is_open_is_not_deleted(tmp_path: Path, opened: Opened) -> None:
    alive = opened(tmp_path / "20260301", segment=500)
    for number in range(3):
        # Each segment is full after two lines, so the log is in its second one.
        alive.write(line(batch(number, 1), number))
    for number in range(30):
        later = opened(tmp_path / f"20260401-{number:02}")
        later.write(line(Event("described", "", {"pipeline": "shop"}, at(0)), 1))
        later.close()
        delete_old_runs(tmp_path, keep=5)

    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["20260301", *(f"20260401-{number}" for number in range(25, 30))]
    assert [event.data["batch"] for _, event in read_events(tmp_path / "20260301")] == [0, 1, 2]

    alive.close()
    (tmp_path / "20260402").mkdir()
    delete_old_runs(tmp_path, keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["20260301"]


def test_runs_in_which_no_query_started_are_deleted_first(tmp_path: Path, opened: Opened) -> None:
    for number in range(6):
        log = opened(tmp_path / f"2026030{number}")
        log.write(line(Event("described", "", {"pipeline": "shop"}, at(0)), 1))
        if number < 3:
            log.write(line(started(), 2))
        log.write(line(Event("run_stopped", "", {"exit_code": 3}, at(9)), 3))
        log.close()

    delete_old_runs(tmp_path, keep=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "20260300",
        "20260301",
        "20260302",
        "20260305",
    ]

    delete_old_runs(tmp_path, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20260301", "20260302"]


def test_the_tail_of_a_long_run_begins_with_what_it_is(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run", segment=2000)
    log.write(line(Event("described", "", {"pipeline": "shop"}, at(0)), 1))
    for number in range(20):
        log.write(line(batch(number, number), number + 2))

    last_events = list(read_last_events(tmp_path / "run"))

    assert last_events[0][1].event == "described"
    assert last_events[-1][0] == 21
    assert len(last_events) < 10


def test_what_is_written_is_for_the_owner_alone(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path / "run", segment=500)
    for number in range(3):
        log.write(line(batch(number, 1), number))
        log.write(json.dumps({"event": "x", "at": at(0)}))

    files = [tmp_path / "run", *(tmp_path / "run").iterdir()]
    assert [file.name for file in files if file.stat().st_mode & 0o077] == []
