"""The feed never holds a query up, tells each reader everything once, and no secret to anybody."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http import event_stream
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.run_log import RunLog, read_events
from millstream.engine.events.event_bus import Event
from millstream.spec.secrets.redaction import REDACTOR
from unit.dashboard.conftest import START, at, batch, folded, started

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_full_queue_drops_events_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "WAITING", 10)
    full = EventStream(folded(), counts=EventCounters())

    for number in range(25):
        full.take(batch(number, number))

    assert full.dropped == 15


def test_a_disk_that_stands_still_holds_nobody_up(tmp_path: Path) -> None:
    go_on, stuck = threading.Event(), threading.Event()

    class Stuck(RunLog):
        def write(self, line: str) -> None:  # noqa: ARG002 - as the log has it
            stuck.set()
            go_on.wait(60)

    slow = EventStream(folded(), counts=EventCounters(), log=Stuck(tmp_path))
    slow.start()
    slow.take(started())
    assert stuck.wait(60)

    for number in range(1000):
        slow.take(batch(number, number))

    # The write of the first event has not come back, and a thousand were taken.
    assert not go_on.is_set()
    go_on.set()
    slow.close()
    assert slow.folded.queries["funnel"].counts["batches"] == 1000


def test_a_log_goes_on_once_a_full_disk_has_room_with_the_totals_of_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, is_full = [1000.0], [False]

    class Disk(RunLog):
        def write(self, line: str) -> None:
            if is_full[0]:
                assert self._file is not None
                self._file.write(line[:20])
                raise OSError(28, "No space left on device")
            super().write(line)

    monkeypatch.setattr(event_stream.time, "monotonic", lambda: now[0])
    page = EventStream(folded(), counts=EventCounters(), log=Disk(tmp_path))
    page.fold(started())
    page.fold(batch(0, 6))
    is_full[0] = True
    page.fold(batch(1, 6))
    page.fold(batch(2, 6))
    is_full[0] = False
    page.fold(batch(3, 6))
    assert page.document()["queries"][0]["batch"] == 3
    now[0] += event_stream.LOG_PAUSE
    page.fold(batch(4, 6))
    page.fold(batch(5, 6))
    page.close()

    read = folded()
    for number, event in read_events(tmp_path):
        read.take(event, number)
    assert read.queries["funnel"].counts == page.folded.queries["funnel"].counts
    assert read.queries["funnel"].counts["batches"] == 6
    batches = [event.data["batch"] for _, event in read_events(tmp_path) if event.event == "batch_committed"]
    assert batches == [0, 4, 5]


def test_a_reader_that_was_away_gets_what_it_missed_and_nothing_twice(feed: EventStream) -> None:
    place = feed.where("20260301-120000-4711:50")
    assert place is not None

    after = feed.after(place, 0)

    assert after is not None
    assert [item.id for item in after] == [f"20260301-120000-4711:{number}" for number in range(51, 57)]
    assert feed.after(after[-1].place, 0) == []


def test_an_id_of_nobody_and_a_place_that_is_gone_are_told_apart_from_the_end(feed: EventStream) -> None:
    assert feed.where("another:1") is None
    assert feed.where(None) == feed.place
    feed._ring.popleft()
    assert feed.after(0, 0) is None


def test_a_point_comes_with_the_entry_of_its_batch(feed: EventStream) -> None:
    after = feed.after(0, 0)

    assert after is not None
    entries = [json.loads(item.data) for item in after]
    batches = [entry for entry in entries if entry["event"] == "batch_committed"]
    assert len(batches) == 27
    phases = batches[0]["point"]["phases"]
    assert (
        abs(sum(phases.values()) - feed.folded.queries["funnel"].series.points[0]["phases"]["addBatch"]) < 1
    )
    assert all(entry["point"] is None for entry in entries if entry["event"] != "batch_committed")


def test_secrets_are_hidden_in_the_state_the_stream_and_the_log(tmp_path: Path) -> None:
    REDACTOR.protect("S3CR3T-canary")
    page = EventStream(folded(), counts=EventCounters(), log=RunLog(tmp_path / "run"))
    reason = "login of 'me' with S3CR3T-canary at postgresql://me:other@host refused"

    page.fold(started())
    page.fold(Event("retry", "funnel", {"reason": reason, "wait_seconds": 1.0, "failures": 1}, at(3)))
    page.close()

    after = page.after(0, 0)
    assert after is not None
    text = json.dumps(page.document()) + after[-1].data + (tmp_path / "run/000001.jsonl").read_text()
    assert "login of 'me' with ***" in text
    assert "S3CR3T" not in text
    assert ":other@" not in text


def test_what_is_logged_gives_the_same_state_when_it_is_read_again(tmp_path: Path) -> None:
    second = EventStream(
        folded(), counts=EventCounters(), log=RunLog(tmp_path / "run"), clock=lambda: START + 60
    )
    for event in (started(), batch(0, 6, newest=at(5)), batch(1, 11, watermark=at(-300))):
        second.fold(event)
    second.close()

    read = folded()
    for number, event in read_events(tmp_path / "run"):
        read.take(event, number)

    assert read.document(START + 60)["queries"] == second.folded.document(START + 60)["queries"]


def test_a_run_before_this_one_fills_the_plots_the_log_and_the_stream() -> None:
    before = folded(started(), batch(0, 6), Event("query_stopped", "funnel", {"reason": "killed"}, at(7)))
    entries = [{"id": f"r0:{number}", "at": at(number), "event": "x"} for number in range(3)]
    page = EventStream(folded(), counts=EventCounters(), clock=lambda: START + 70)

    page.remember([(before, entries)])
    page.fold(started(60))
    page.fold(batch(1, 66))

    series = page.series("funnel", 60)
    assert series is not None
    assert series["batch"] == [0, 1]
    assert [run["id"] for run in series["runs"]] == ["r1", "r1"]
    assert page.document()["log"][0]["text"].startswith("funnel: started")
    after = page.after(page.where("r0:1") or 0, 0)
    assert after is not None
    assert after[0].id == "r0:2"
    assert len(after) == 3
