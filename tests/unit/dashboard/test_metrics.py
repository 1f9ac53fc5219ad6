"""Metrics read back from their text, and named as those of the dashboard and the rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from millstream.dashboard import metrics
from millstream.dashboard.names import METRICS, exported

if TYPE_CHECKING:
    from millstream.dashboard.feed import Feed

MONITORING = Path(__file__).parents[3] / "monitoring"
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"')
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Samples:
    """The samples of a text, each of which must be right, by name and labels."""
    found: Samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            parts = SAMPLE.fullmatch(line)
            assert parts, line
            key = (parts[1], frozenset(LABEL.findall(parts[2])) - {("pipeline", "ecommerce")})
            assert key not in found, f"twice: {line}"
            found[key] = float(parts[3])
    return found


def told(feed: Feed) -> str:
    return metrics.text(feed.document(), feed.counts, feed.dropped)


def labels(**given: str) -> frozenset[tuple[str, str]]:
    return frozenset(given.items())


def test_every_sample_has_a_head_and_a_name_that_is_exported(feed: Feed) -> None:
    text = told(feed)

    heads = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
    assert heads == [(one.name, one.kind) for one in METRICS]
    assert {name for name, _ in read(text)} <= exported()
    assert {name for name, _ in read(text)} >= exported() - {
        "millstream_batches_waiting",
        "millstream_exported_total",
        "millstream_export_lost_total",
    }


def test_labels_are_those_that_the_reference_names(feed: Feed) -> None:
    known = {one.name: set(one.labels) for one in METRICS}

    for name, found in read(told(feed)):
        plain = re.sub("_(bucket|sum|count)$", "", name)
        assert {label for label, _ in found} - {"le"} == known[plain] - {"pipeline"}


def test_figures_are_those_of_the_state(feed: Feed) -> None:
    state, samples = feed.document(), read(told(feed))

    funnel = state["queries"][0]
    assert samples["millstream_rows_in_total", labels(query="funnel")] == funnel["rows_in"] > 0
    assert samples["millstream_state_rows", labels(query="funnel")] == funnel["state_rows"] > 0
    row = state["lag"][0]
    place = labels(query=row["query"], topic=row["topic"], partition=row["partition"])
    assert samples["millstream_offsets_behind", place] == row["behind"]
    assert samples["millstream_query_up", labels(query="orders")] == 0
    assert samples["millstream_query_state", labels(query="orders", state="failed")] == 1


def test_a_histogram_is_cumulative_and_adds_up(feed: Feed) -> None:
    samples = read(told(feed))
    which = {"query": "funnel", "phase": "triggerExecution"}

    buckets = [
        value
        for (name, found), value in samples.items()
        if name == "millstream_batch_seconds_bucket" and set(which.items()) <= found
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == samples["millstream_batch_seconds_count", labels(**which)] == 11
    points = feed.folded.queries["funnel"].series.points
    whole = sum(sum(point["phases"].values()) for point in points)
    assert abs(samples["millstream_batch_seconds_sum", labels(**which)] - whole) < 0.1


def test_a_label_cannot_end_its_line(feed: Feed) -> None:
    hostile = 'a"} 1\nmillstream_up{x="\\'
    feed.document()["lag"][0]["topic"] = hostile

    samples = read(told(feed))

    escaped = hostile.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    assert any(("topic", escaped) in found for _, found in samples)


def test_the_dashboard_and_the_rules_ask_for_names_that_are_exported() -> None:
    board = json.loads((MONITORING / "grafana.json").read_text())
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]

    names = {name for text in asked for name in re.findall(r"millstream_\w+", text)}

    assert len(names) > 10
    assert names - exported() == set()
