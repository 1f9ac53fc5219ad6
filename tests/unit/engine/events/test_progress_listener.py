"""Spark's progress report, as the figures of an event."""

import json
from typing import Any

import pytest

from millstream.engine.events.event_bus import Event
from millstream.engine.events.progress_listener import _count_failures, extract_metrics
from millstream.frames.expectations import BYTES, LETTERS, REJECTED, REMOVED, metric_name

# 2026-01-01T12:31:00Z in microseconds since 1970.
NEWEST = 1_767_270_660_000_000
REPORT = {
    "batchId": 7,
    "numInputRows": 120,
    "inputRowsPerSecond": float("inf"),
    "processedRowsPerSecond": 60.04,
    "durationMs": {"triggerExecution": 2000},
    "eventTime": {"watermark": "2026-01-01T12:26:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 3, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 1},
        {"numRowsTotal": 4, "memoryUsedBytes": 200, "numRowsDroppedByWatermark": 2},
    ],
    "observedMetrics": {
        "millstream:out": {"rows": 5},
        "millstream:source:clicks": {"rows": 120, "malformed": 2, "newest": NEWEST},
        "millstream:source:carts": {"rows": 0, "malformed": 0, "newest": None},
    },
    "sources": [],
}


def test_state_and_late_rows_are_summed_over_operators() -> None:
    messages = extract_metrics(REPORT)

    assert (messages["state_rows"], messages["state_bytes"], messages["late_rows"]) == (7, 300, 3)


@pytest.mark.parametrize(
    ("operators", "store"),
    [
        ([], None),
        ([{"customMetrics": {"loadedMapCacheHitCount": 1}}], "in_memory"),
        ([{}], "in_memory"),
        (
            [
                {"customMetrics": {"stateOnCurrentVersionSizeBytes": 1}},
                {"customMetrics": {"rocksdbPutCount": 1}},
            ],
            "rocksdb",
        ),
    ],
)
def test_the_state_store_is_told_by_the_metrics_of_its_operators(
    operators: list[dict[str, Any]], store: str | None
) -> None:
    assert extract_metrics({**REPORT, "stateOperators": operators})["state_store"] == store


def test_rows_and_newest_event_come_from_observed_metrics() -> None:
    messages = extract_metrics(REPORT)

    assert (messages["rows_in"], messages["rows_out"], messages["malformed"]) == (120, 5, 2)
    assert messages["newest"] == "2026-01-01T12:31:00Z"


@pytest.mark.parametrize(
    ("newest", "text"),
    [
        ([NEWEST, NEWEST + 500_000], "2026-01-01T12:31:00.500000Z"),
        ([NEWEST, None], "2026-01-01T12:31:00Z"),
        ([-1_000_000], "1969-12-31T23:59:59Z"),
        ([None], None),
        ([10**18], None),
    ],
)
def test_the_newest_event_of_several_sources_is_the_last_one(
    newest: list[int | None], text: str | None
) -> None:
    metrics = {f"millstream:source:{number}": {"newest": micros} for number, micros in enumerate(newest)}

    assert extract_metrics({**REPORT, "observedMetrics": metrics})["newest"] == text


def test_a_rate_of_an_instant_is_no_number() -> None:
    assert extract_metrics(REPORT)["input_rate"] is None
    assert extract_metrics(REPORT)["processed_rate"] == 60.0


def test_a_watermark_that_never_moved_is_none() -> None:
    report = {**REPORT, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}

    assert extract_metrics(report)["watermark"] is None


def test_an_event_is_one_line_of_json() -> None:
    line = Event("batch_committed", "funnel", extract_metrics(REPORT)).to_json()

    assert "\n" not in line
    assert json.loads(line)["batch"] == 7


@pytest.mark.parametrize("field", [BYTES, LETTERS, REJECTED, REMOVED])
def test_a_count_of_rows_is_not_that_of_an_expectation(field: str) -> None:
    metrics = {metric_name("orders"): {"paid": 2, field: 5}}

    assert _count_failures(metrics) == {"orders": {"paid": 2}}


def test_rows_that_expectations_removed_are_summed_over_sources_and_views() -> None:
    metrics = {metric_name(name): {"paid": 9, REMOVED: rows} for name, rows in (("orders", 5), ("sums", 2))}

    assert extract_metrics({**REPORT, "observedMetrics": metrics})["rows_removed"] == 7


def test_a_metric_of_the_user_with_the_same_columns_changes_no_figure() -> None:
    own = {"rows": "many", "malformed": 9, "newest": "2027-01-01T00:00:00.000Z", REMOVED: 9}
    observed = {**REPORT["observedMetrics"], "stats": own, "totals": None}

    assert extract_metrics({**REPORT, "observedMetrics": observed}) == extract_metrics(REPORT)
