"""What the live page shows of a run is what Spark itself reports of it."""

from __future__ import annotations

import json
import re
import socket
import sys
import urllib.request
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener

from millstream.dashboard.export import spark_metrics
from millstream.dashboard.http import data_preview
from millstream.dashboard.live_run import LivePage, PageOptions, runs_folder
from millstream.dashboard.replay_server import load_past_run
from millstream.dashboard.run_log import list_runs
from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent

    from spark.conftest import Project


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for a sink than a page would."""
    monkeypatch.setattr(data_preview, "PATIENCE", 60.0)


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
    project.add_lines({"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}, "{broken")
    project.add_lines({"id": "b", "amount": 4, "at": "2026-01-01T12:14:00Z"})
    project.add_lines({"id": "c", "amount": 5, "at": "2026-01-01T12:45:00Z"})
    pipeline, reports = project.pipeline(), Reports("sums")
    project.spark.streams.addListener(reports)

    with LivePage(pipeline, list(pipeline.queries), PageOptions(port=0)) as page:
        fine = project.run(pipeline, on_event=page.feed.take)
        assert fine
        visited = wait(page, "sums", reports.kept[-1]["batchId"])
        rows, letters = get(page, "/api/rows?sink=sink.sums.0"), get(page, "/api/letters")
        series, metrics = get(page, "/api/series?query=sums"), text(page, "/metrics")
    project.spark.streams.removeListener(reports)

    last = reports.kept[-1]
    assert visited["rows_in"] == sum(report["numInputRows"] for report in reports.kept) == 4
    assert visited["watermark"] == last["eventTime"]["watermark"] == "2026-01-01T12:35:00.000Z"
    assert visited["newest"] == "2026-01-01T12:45:00.000Z"
    assert visited["state_rows"] == sum(item["numRowsTotal"] for item in last["stateOperators"]) > 0
    assert visited["state_bytes"] == sum(item["memoryUsedBytes"] for item in last["stateOperators"])
    assert visited["batch_seconds"] == last["durationMs"]["triggerExecution"] / 1000
    assert visited["dead_letters"] == 1
    assert series["batch"] == [report["batchId"] for report in reports.kept]
    rates = [report.get("processedRowsPerSecond") for report in reports.kept]
    assert [item for item in series["processed_rate"] if item] == [round(rate, 1) for rate in rates if rate]
    assert series["phases"]["addBatch"] == [
        report["durationMs"].get("addBatch", 0) / 1000 for report in reports.kept
    ]
    assert f'millstream_state_rows{{pipeline="shop",query="sums"}} {visited["state_rows"]}\n' in metrics
    assert [row[1] for row in rows["rows"]] == [5, 4, 3]
    assert (rows["time_column"], rows["value_columns"]) == ("since", ["amount"])
    assert [
        (reason["reason"], reason["records"]) for reason in letters["reasons"] if reason["query"] == "sums"
    ] == [("malformed", 1)]
    assert letters["latest"][0]["value"] == "{broken"

    # What is on disk shows the same run again.
    run = list_runs(runs_folder(pipeline))[0]
    queries = load_past_run(run.folder, run.id).document()["queries"]
    assert next(item for item in queries if item["name"] == "sums")["state_bytes"] == visited["state_bytes"]


def test_metrics_of_spark_and_its_jvm_are_what_they_say_themselves(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_metrics, "FRESH", -1.0)
    monkeypatch.setattr(spark_metrics, "PATIENCE", 60.0)
    project.add_lines(
        *({"id": str(number), "amount": number, "at": "2026-01-01T12:01:00Z"} for number in range(7))
    )
    pipeline, spark = project.pipeline(), project.spark
    context = spark.sparkContext
    jvm, session = context._jvm, spark._jsparkSession
    assert jvm is not None

    with LivePage(pipeline, list(pipeline.queries), PageOptions(port=0)) as page, page.spark(spark):
        first = exported(page)
        for _ in range(3):
            session.range(0, 8, 1, 2).rdd().count()
        jvm.java.lang.System.gc()
        counted = exported(page)
        fine = project.run(pipeline, on_event=page.feed.take)
        last = exported(page)

    assert fine
    assert {name for name, _ in last} == {item.metric.name for item in spark_metrics.ENGINE}
    assert counted["spark_jobs_total", ""] - first["spark_jobs_total", ""] == 3
    assert counted["spark_jobs_active", ""] == 0
    # One collection was asked for by name; others may have come.
    assert summed(counted, "jvm_gc_collections_total") > summed(first, "jvm_gc_collections_total")
    assert last["jvm_memory_max_bytes", "heap"] == jvm.java.lang.Runtime.getRuntime().maxMemory()
    for area in ("heap", "non-heap"):
        assert 0 < last["jvm_memory_used_bytes", area] <= last["jvm_memory_committed_bytes", area]
    room = spark._jsc.sc().getExecutorMemoryStatus().values().head()._1()
    # Spark tells whole MiB of it.
    assert last["spark_storage_memory_max_bytes", ""] == room // 2**20 * 2**20
    # Two queries read the file's seven lines, each for itself.
    assert (
        last["spark_executor_records_read_total", ""] - counted["spark_executor_records_read_total", ""] >= 14
    )
    assert 0 < last["spark_executor_cpu_seconds_total", ""] <= last["spark_executor_run_seconds_total", ""]
    assert summed(last, "spark_listener_events_posted_total") > summed(
        counted, "spark_listener_events_posted_total"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="counted in /proc")
def test_the_open_files_of_a_run_are_those_of_its_jvm(project: Project) -> None:
    with (
        LivePage(project.pipeline(), ["sums"], PageOptions(port=0)) as page,
        page.spark(project.spark),
        socket.create_server(("127.0.0.1", 0), backlog=300) as server,
    ):
        connect, read = (
            internals.java_class(project.spark, "java.net.Socket"),
            page.feed.folded.read_open_files,
        )
        before = read()
        opened = [connect(*server.getsockname()) for _ in range(200)]
        after = read()
        for connection in opened:
            connection.close()

    more = {files.process: files.open - earlier.open for earlier, files in zip(before, after, strict=True)}
    # Spark and the page open some files of their own.
    assert more["jvm"] == pytest.approx(200, abs=50)
    assert abs(more["python"]) < 50


SAMPLE = re.compile(r'((?:spark|jvm)_\w+)\{pipeline="shop"(?:,\w+="([^"]*)")?\} (\S+)')


def exported(page: LivePage) -> dict[tuple[str, str], float]:
    """What /metrics says of Spark and its JVM, by the name of the metric and its second label."""
    matches = SAMPLE.findall(text(page, "/metrics"))
    return {(name, label): float(value) for name, label, value in matches}


def summed(found: dict[tuple[str, str], float], metric: str) -> float:
    return sum(value for (name, _), value in found.items() if name == metric)


def wait(page: LivePage, query: str, batch: int) -> dict[str, Any]:
    """The query as the page shows it, once it has heard of a batch; the stream says when to look."""
    assert page.address is not None
    with urllib.request.urlopen(f"{page.origin}api/events", timeout=60) as stream:
        states = (line for line in stream if line.startswith(b"data: {") and b'"queries"' in line)
        for line in islice(states, 60):
            messages = next(item for item in json.loads(line[6:])["queries"] if item["name"] == query)
            if messages["batch"] == batch and messages["state"] == "stopped":
                return dict(messages)
    raise AssertionError(f"the page has not heard of batch {batch}")


def text(page: LivePage, path: str) -> str:
    with urllib.request.urlopen(f"{page.origin}{path.lstrip('/')}", timeout=60) as response:
        return str(response.read().decode())


def get(page: LivePage, path: str) -> Any:
    return json.loads(text(page, path))
