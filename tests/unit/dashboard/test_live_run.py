"""The page of a run: opened with the run, its history filled from the runs before it, closed with it."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from functools import partial
from typing import TYPE_CHECKING

import pytest

from millstream.dashboard import live_run
from millstream.dashboard.export.alert_webhook import Webhook
from millstream.dashboard.live_run import LivePage, PageOptions, recent_runs, runs_folder
from millstream.dashboard.replay_server import load_past_run, shift_event
from millstream.dashboard.run_log import RUNS, RunLog, delete_old_runs, list_runs, read_events
from millstream.dashboard.state import timestamps
from millstream.diagnostics.failure import NotReady
from millstream.engine.events.event_bus import Event
from millstream.pipeline.model import Pipeline
from unit.dashboard.conftest import RECORDED

if TYPE_CHECKING:
    from pathlib import Path


def pipeline(folder: Path, **more: object) -> Pipeline:
    spec = {
        "name": "ecommerce",
        "folder": folder,
        "sources": {"clicks": {"rate": {"rows_per_second": 1}}},
        "queries": {"funnel": {"from": "clicks", "to": {"console": {}}}},
        "alerts": ["no progress for 3 triggers"],
        **more,
    }
    return Pipeline.model_validate(spec)


def recorded_before(folder: Path, seconds: float) -> None:
    """The recorded run as if it had ended so many seconds ago."""
    events = list(read_events(RECORDED))
    by = time.time() - seconds - timestamps.parse(events[-1][1].at)
    log = RunLog(folder / ".millstream/runs/20260301-120000-4711")
    for number, event in events:
        log.write(f'{shift_event(event, by).to_json()[:-1]}, "n": {number}}}')
    log.close()


def test_a_run_is_served_while_it_goes_on_and_kept_when_it_is_over(tmp_path: Path) -> None:
    with LivePage(pipeline(tmp_path), ["funnel"], PageOptions(port=0)) as page:
        with urllib.request.urlopen(f"{page.origin}api/state", timeout=60) as response:
            state = json.load(response)
        page.feed.take(Event("run_stopped", data={"exit_code": 0}))

    assert [node["id"] for node in state["graph"]["nodes"]] == [
        "source.clicks",
        "query.funnel",
        "sink.funnel.0",
    ]
    assert [alert["name"] for alert in state["alerts"]] == ["no progress for 3 triggers"]
    runs = list_runs(runs_folder(pipeline(tmp_path)))
    assert [(item.pipeline, item.exit_code) for item in runs] == [("ecommerce", 0)]
    assert load_past_run(runs[0].folder, runs[0].id).document()["run"]["id"] == runs[0].id


def test_a_run_that_is_not_recorded_leaves_the_runs_as_they_are_and_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    runs = [tmp_path / f".millstream/runs/20260301-1200{number:02}-1" for number in range(31)]
    for run in runs:
        run.mkdir(parents=True)
    watched = pipeline(tmp_path, alerts_to="http://127.0.0.1:1")
    options = PageOptions(is_served=False, is_recorded=False)

    with LivePage(watched, ["funnel"], options) as page:
        page.feed.take(Event("run_stopped", data={"exit_code": 0}))

    assert (page.feed.outward, page.feed.on_state) == ([], None)
    assert page.feed.folded.run["ended"] is not None
    assert sorted(runs_folder(watched).iterdir()) == runs


def test_a_run_that_follows_shows_the_one_before_it(tmp_path: Path) -> None:
    recorded_before(tmp_path, 30)

    with LivePage(pipeline(tmp_path), ["funnel"], PageOptions(is_served=False)) as page:
        series = page.feed.series("funnel", 60)
        place = page.feed.where("20260301-120000-4711:54")
        assert place is not None
        missed = page.feed.after(place, 0)

    assert page.address is None
    assert series is not None
    assert series["batch"] == list(range(11))
    assert series["runs"][0]["id"] == "20260301-120000-4711"
    assert missed is not None
    assert [item.id for item in missed][:2] == ["20260301-120000-4711:55", "20260301-120000-4711:56"]


def test_a_run_of_yesterday_another_pipeline_and_a_torn_log_are_left_out(tmp_path: Path) -> None:
    recorded_before(tmp_path, 86_400)
    runs = tmp_path / ".millstream/runs"

    assert list(recent_runs(runs, "ecommerce", time.time(), "this")) == []
    assert list(recent_runs(runs, "other", time.time() - 86_400, "this")) == []
    assert len(list(recent_runs(runs, "ecommerce", time.time() - 86_400, "this"))) == 1
    with (runs / "20260301-120000-4711/000001.jsonl").open("a") as log:
        log.write('{"event": "batch_committed", "at": "2026-03-01T12:00:00Z"}\n')
    assert list(recent_runs(runs, "ecommerce", time.time() - 86_400, "this")) == []


def test_the_log_of_an_active_run_outlives_the_starts_after_it(tmp_path: Path) -> None:
    with LivePage(pipeline(tmp_path), ["funnel"], PageOptions(is_served=False)) as page:
        run = runs_folder(pipeline(tmp_path)) / page.feed.folded.run["id"]
        for number in range(40):
            (runs_folder(pipeline(tmp_path)) / f"29990101-0000{number:02}-1").mkdir()

        delete_old_runs(runs_folder(pipeline(tmp_path)))

        assert [event.event for _, event in read_events(run)] == ["described"]
    assert len(list(runs_folder(pipeline(tmp_path)).iterdir())) == RUNS + 1


def test_a_killed_run_shows_its_last_moment() -> None:
    over = load_past_run(RECORDED, "recorded").document()

    assert (over["at"], over["run"]["live"]) == ("2026-03-01T12:00:59.400Z", False)
    assert over["state"] == "failed"


def test_a_page_of_a_past_run_has_all_events_once_it_has_the_state() -> None:
    feed = load_past_run(RECORDED, "recorded")

    place = feed.where(feed.document()["id"])

    assert place is not None
    assert feed.after(place, 0) == []


@pytest.mark.parametrize(
    ("raised", "code"),
    [(SystemExit(0), 0), (KeyboardInterrupt(), 130), (NotReady("no broker", ""), 4), (OSError(), 70)],
)
def test_a_run_that_is_ended_before_spark_is_up_says_so_in_its_log(
    tmp_path: Path, raised: BaseException, code: int
) -> None:
    with (
        pytest.raises(type(raised)),
        LivePage(pipeline(tmp_path), ["funnel"], PageOptions(is_served=False)),
    ):
        raise raised

    runs = list_runs(runs_folder(pipeline(tmp_path)))
    assert [item.exit_code for item in runs] == [code]
    assert [event.event for _, event in read_events(runs[0].folder)] == ["described", "run_stopped"]


def test_the_webhook_is_told_what_ended_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    came = threading.Event()

    def send(address: str, body: bytes) -> None:
        texts.append(f"{address} {json.loads(body)['text']}")
        came.set()

    monkeypatch.setattr(live_run, "Webhook", partial(Webhook, send=send))
    watched = pipeline(tmp_path, alerts_to="http://127.0.0.1:1")
    failure = {"cause": "defect", "reason": "division by zero", "fix": ""}

    with LivePage(watched, ["funnel"], PageOptions(is_served=False)) as page:
        page.feed.take(Event("query_failed", "funnel", failure))

    assert came.wait(60)
    assert texts == ["http://127.0.0.1:1 ecommerce.funnel: query failed: division by zero"]


def test_a_run_that_told_its_end_tells_it_once(tmp_path: Path) -> None:
    def run() -> None:
        with LivePage(pipeline(tmp_path), ["funnel"], PageOptions(port=0)) as page:
            page.feed.take(Event("run_stopped", data={"exit_code": 1}))
            raise SystemExit(0)

    with pytest.raises(SystemExit):
        run()

    assert [item.exit_code for item in list_runs(runs_folder(pipeline(tmp_path)))] == [1]
