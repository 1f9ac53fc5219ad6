"""Metrics read back from their text, and named as those of the dashboard and the rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from millstream.dashboard.export import prometheus
from millstream.dashboard.export.metric_definitions import METRICS, series_names
from millstream.dashboard.export.prometheus import MOST_PARTITIONS
from millstream.dashboard.export.spark_metrics import ENGINE, Engine
from millstream.dashboard.state.kafka_lag import TopicLag
from unit.dashboard.conftest import batch

if TYPE_CHECKING:
    from millstream.dashboard.http.event_stream import EventStream

MONITORING = Path(__file__).parents[4] / "monitoring"
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"')
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Samples:
    """The samples of a text, each of which must be right, by name and labels."""
    actual: Samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            parts = SAMPLE.fullmatch(line)
            assert parts, line
            key = (parts[1], frozenset(LABEL.findall(parts[2])) - {("pipeline", "ecommerce")})
            assert key not in actual, f"twice: {line}"
            actual[key] = float(parts[3])
    return actual


def render_metrics(feed: EventStream) -> str:
    return prometheus.format_metrics(feed.document(), feed.partitions, feed.counts, feed.dropped)


def labels(**given: str) -> frozenset[tuple[str, str]]:
    return frozenset(given.items())


def test_every_sample_has_a_head_and_a_name_that_is_exported(feed: EventStream) -> None:
    text = render_metrics(feed)

    heads = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
    assert heads == [(metric.name, metric.kind) for metric in METRICS]
    assert {name for name, _ in read(text)} <= series_names()
    assert {name for name, _ in read(text)} >= series_names() - {
        "millstream_batches_waiting",
        "millstream_exported_total",
        "millstream_export_lost_total",
    }


def test_labels_are_those_that_the_reference_names(feed: EventStream) -> None:
    known = {metric.name: set(metric.labels) for metric in METRICS}

    for name, actual in read(render_metrics(feed)):
        plain = re.sub("_(bucket|sum|count)$", "", name)
        assert {label for label, _ in actual} - {"le"} == known[plain] - {"pipeline"}


def test_figures_are_those_of_the_state(feed: EventStream) -> None:
    state, samples = feed.document(), read(render_metrics(feed))

    funnel = state["queries"][0]
    assert samples["millstream_rows_in_total", labels(query="funnel")] == funnel["rows_in"] > 0
    assert samples["millstream_state_rows", labels(query="funnel")] == funnel["state_rows"] > 0
    (row, *_) = feed.partitions("funnel") or []
    place = labels(query="funnel", source=row["source"], topic=row["topic"], partition=str(row["partition"]))
    assert samples["millstream_offsets_behind", place] == row["behind"] > 0
    assert samples["millstream_query_up", labels(query="orders")] == 0
    assert samples["millstream_query_state", labels(query="orders", state="failed")] == 1
    assert samples["millstream_open_files", labels(process="jvm")] == 600
    assert samples["millstream_open_files_max", labels(process="jvm")] == 4096


def test_rows_that_break_an_expectation_count_as_dropped_only_if_they_were(feed: EventStream) -> None:
    broken = {"orders": {"known_user": 7, "paid": 3}}
    feed.fold(batch(99, 61, expectations=broken, rows_removed=3))

    samples = read(render_metrics(feed))

    assert samples["millstream_expectation_failures_total", labels(query="funnel")] == 10
    dropped = labels(query="funnel", reason="expectation")
    assert samples["millstream_rows_dropped_total", dropped] == 3


def test_a_run_that_reads_very_many_partitions_has_a_time_series_for_each_topic(feed: EventStream) -> None:
    wide = feed.folded.queries["orders"].topics["wide", "wide"] = TopicLag()
    offsets = {str(partition): 5 for partition in range(MOST_PARTITIONS + 1)}
    wide.record_batch(0.0, 0.0, offsets, {"7": 12})

    samples = read(render_metrics(feed))

    assert samples["millstream_offsets_behind", labels(query="orders", source="wide", topic="wide")] == 7
    assert not [actual for name, actual in samples if "partition" in dict(actual)]


@pytest.mark.parametrize("partitions", [1, MOST_PARTITIONS + 1])
def test_two_sources_of_a_query_that_read_one_topic_have_a_time_series_each(
    feed: EventStream, partitions: int
) -> None:
    offsets = {str(partition): 5 for partition in range(partitions)}
    for source, end in (("placed", 7), ("cancelled", 9)):
        lag = feed.folded.queries["orders"].topics[source, "events"] = TopicLag()
        lag.record_batch(0.0, 0.0, offsets, {"0": end})

    samples = read(render_metrics(feed))

    behind = {
        dict(actual)["source"]: value
        for (_, actual), value in samples.items()
        if ("topic", "events") in actual
    }
    assert behind == {"placed": 2, "cancelled": 4}


def test_a_histogram_is_cumulative_and_adds_up(feed: EventStream) -> None:
    samples = read(render_metrics(feed))
    which = {"query": "funnel", "phase": "triggerExecution"}

    buckets = [
        value
        for (name, actual), value in samples.items()
        if name == "millstream_batch_seconds_bucket" and set(which.items()) <= actual
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == samples["millstream_batch_seconds_count", labels(**which)] == 11
    points = feed.folded.queries["funnel"].series.points
    total = sum(sum(point["phases"].values()) for point in points)
    assert abs(samples["millstream_batch_seconds_sum", labels(**which)] - total) < 0.1


def test_a_label_cannot_end_its_line(feed: EventStream) -> None:
    hostile = 'a"} 1\nmillstream_up{x="\\'
    feed.folded.queries["funnel"].topics["clicks", hostile] = TopicLag({"0": 1}, {"0": 3}, behind=2)

    samples = read(render_metrics(feed))

    escaped = hostile.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    assert any(("topic", escaped) in actual for _, actual in samples)


def test_the_dashboard_and_the_rules_ask_for_names_that_are_exported() -> None:
    board = json.loads((MONITORING / "grafana.json").read_text())
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    exprs = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    exprs += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]

    names = {name for text in exprs for name in re.findall(r"millstream_\w+", text)}

    assert len(names) > 10
    assert names - series_names() == set()


def test_the_rule_and_the_plot_of_dead_letters_count_those_with_which_a_time_series_begins() -> None:
    board = json.loads((MONITORING / "grafana.json").read_text())
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    by_name = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    plots = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    name = "millstream_dead_letters_total"

    # `increase` of a series with one value is 0.
    begun = f"or ({name} unless max_over_time({name}[15m] offset 15m)) > 100"
    assert begun in by_name["MillstreamDeadLetters"]
    # `increase` drops the name of the metric, and so does `* 1`, so that both are one line.
    assert f"({name} unless max_over_time({name}[5m] offset 5m)) * 1 or increase({name}[5m])" in plots


def test_the_rules_and_the_page_on_monitoring_name_the_same_job() -> None:
    page = (MONITORING.parent / "docs/how-to/monitor.md").read_text()

    jobs = re.findall(r'up\{job="(\w+)"\} == 0', (MONITORING / "alerts.yml").read_text())

    assert jobs == re.findall(r"job_name: (\w+)", page) == ["millstream"]


def test_sparks_own_figures_stand_beside_those_of_the_run(feed: EventStream) -> None:
    reference = {
        "jvm.heap.used": 1000.0,
        "jvm.non-heap.max": -1.0,
        "jvm.G1-Young-Generation.count": 3.0,
        "jvm.G1-Young-Generation.time": 1500.0,
        "jvm.direct.count": 7.0,
        "jvm.mapped - 'non-volatile memory'.count": 7.0,
        "BlockManager.memory.maxMem_MB": 2.0,
        "executor.cpuTime": 2.5e9,
        "unheard.of": 1.0,
    }
    feed.engine = Engine(lambda: reference)

    text = prometheus.format_metrics(
        feed.document(), feed.partitions, feed.counts, 0, (), feed.engine_figures()
    )

    values = {key: value for key, value in read(text).items() if key[0].startswith(("spark_", "jvm_"))}
    assert values == {
        ("jvm_memory_used_bytes", labels(area="heap")): 1000,
        ("jvm_gc_collections_total", labels(gc="G1-Young-Generation")): 3,
        ("jvm_gc_seconds_total", labels(gc="G1-Young-Generation")): 1.5,
        ("spark_storage_memory_max_bytes", labels()): 2 * 2**20,
        ("spark_executor_cpu_seconds_total", labels()): 2.5,
    }
    heads = re.findall(r"^# TYPE ((?:spark|jvm)_\w+) (\w+)$", text, re.MULTILINE)
    assert heads == [(item.metric.name, item.metric.kind) for item in ENGINE]
    feed.engine.close()


def test_spark_is_asked_once_a_second_and_never_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("millstream.dashboard.export.spark_metrics.time.monotonic", lambda: clock[0])
    requests: list[float] = []

    def once() -> dict[str, float]:
        requests.append(clock[0])
        return {"jvm.heap.used": clock[0]}

    engine = Engine(once)
    for now in (100.0, 100.5, 101.5, 101.6):
        clock[0] = now
        engine.figures()
    engine.close()
    clock[0] = 200.0

    assert engine.figures() == {}
    assert requests == [100.0, 101.5]


def test_a_jvm_that_ends_in_the_middle_leaves_its_figures_out() -> None:
    def dead() -> dict[str, float]:
        raise ConnectionRefusedError

    engine = Engine(dead)

    assert engine.figures() == {}
    engine.close()
