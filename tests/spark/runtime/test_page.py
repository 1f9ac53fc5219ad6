"""What the live page shows of a run is what Spark itself reports of it."""

from __future__ import annotations

import json
import urllib.request
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from millstream.dashboard.live import LivePage, Wish, runs_of
from millstream.dashboard.replay import opened
from millstream.dashboard.runlog import past

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent

    from spark.runtime.conftest import Project


class Reports(StreamingQueryListener):
    """Keeps Spark's own reports of one query."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.kept: list[dict[str, Any]] = []

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        report = json.loads(event.progress.json)
        if report["name"] == self._query:
            self.kept.append(report)


def test_the_page_agrees_with_sparks_own_reports(project: Project) -> None:
    project.put({"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}, "{broken")
    project.put({"id": "b", "amount": 4, "at": "2026-01-01T12:14:00Z"})
    project.put({"id": "c", "amount": 5, "at": "2026-01-01T12:45:00Z"})
    pipeline, reports = project.pipeline(), Reports("sums")
    project.spark.streams.addListener(reports)

    with LivePage(pipeline, list(pipeline.queries), Wish(port=0)) as page:
        fine = project.run(pipeline, on_event=page.feed.take)
        assert fine
        seen = wait(page, "sums", reports.kept[-1]["batchId"])
        rows, letters = get(page, "/api/rows?sink=sink.sums.0"), get(page, "/api/letters")
        series, metrics = get(page, "/api/series?query=sums"), text(page, "/metrics")
    project.spark.streams.removeListener(reports)

    last = reports.kept[-1]
    assert seen["rows_in"] == sum(report["numInputRows"] for report in reports.kept) == 4
    assert seen["watermark"] == last["eventTime"]["watermark"] == "2026-01-01T12:35:00.000Z"
    assert seen["newest"] == "2026-01-01T12:45:00.000Z"
    assert seen["state_rows"] == sum(one["numRowsTotal"] for one in last["stateOperators"]) > 0
    assert seen["state_bytes"] == sum(one["memoryUsedBytes"] for one in last["stateOperators"])
    assert seen["batch_seconds"] == last["durationMs"]["triggerExecution"] / 1000
    assert seen["dead_letters"] == 1
    assert series["batch"] == [report["batchId"] for report in reports.kept]
    rates = [report.get("processedRowsPerSecond") for report in reports.kept]
    assert [one for one in series["processed_rate"] if one] == [round(one, 1) for one in rates if one]
    assert series["phases"]["addBatch"] == [
        report["durationMs"].get("addBatch", 0) / 1000 for report in reports.kept
    ]
    assert f'millstream_state_rows{{pipeline="shop",query="sums"}} {seen["state_rows"]}\n' in metrics
    assert [row[1] for row in rows["rows"]] == [5, 4, 3]
    assert (rows["time_column"], rows["value_columns"]) == ("since", ["amount"])
    assert [(one["reason"], one["records"]) for one in letters["reasons"] if one["query"] == "sums"] == [
        ("malformed", 1)
    ]
    assert letters["latest"][0]["value"] == "{broken"

    # What is on disk shows the same run again.
    kept = past(runs_of(pipeline))[0]
    again = opened(kept.folder, kept.id).document()["queries"]
    assert next(one for one in again if one["name"] == "sums")["state_bytes"] == seen["state_bytes"]


def wait(page: LivePage, query: str, batch: int) -> dict[str, Any]:
    """The query as the page shows it, once it has heard of a batch; the stream says when to look."""
    assert page.address is not None
    with urllib.request.urlopen(f"{page.address}api/events", timeout=60) as stream:
        states = (line for line in stream if line.startswith(b"data: {") and b'"queries"' in line)
        for line in islice(states, 10):
            told = next(one for one in json.loads(line[6:])["queries"] if one["name"] == query)
            if told["batch"] == batch and told["state"] == "stopped":
                return dict(told)
    raise AssertionError(f"the page has not heard of batch {batch}")


def text(page: LivePage, path: str) -> str:
    with urllib.request.urlopen(f"{page.address}{path.lstrip('/')}", timeout=60) as answer:
        return str(answer.read().decode())


def get(page: LivePage, path: str) -> Any:
    return json.loads(text(page, path))
