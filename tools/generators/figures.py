"""What a run tells in figures: the metrics, and the schema of the live page's state."""

from __future__ import annotations

import json
import textwrap

from pydantic import TypeAdapter

from generators.layout import MADE, escaped, joined
from millstream.dashboard.export.metric_definitions import BUCKETS, METRICS
from millstream.dashboard.export.spark_metrics import ENGINE
from millstream.dashboard.state.api_schema import Document


def metrics_page() -> str:
    """Every metric of a run."""
    intro = """\
        `/metrics` of the [live page](../how-to/live-page.md) returns the metrics below in Prometheus' text format.
        Times are seconds since 1970, durations are seconds, and sizes are bytes. Counters start at 0 in each run. A
        metric whose value is not known is absent.
        [How to watch a run](../how-to/monitor.md) has a dashboard and alert rules that use these metrics."""
    rows = [
        f"| `{item.name}` | {item.kind} | {', '.join(f'`{label}`' for label in item.labels)} | {escaped(item.what)} |"
        for item in METRICS
    ]
    engine = [
        f"| `{item.metric.name}` | {item.metric.kind} | {', '.join(f'`{label}`' for label in item.metric.labels)} "
        f"| {escaped(item.metric.what)} |"
        for item in ENGINE
    ]
    beside = """\
        ## Spark and its JVM

        The live page reads these metrics from the JVM at most once a second, however many clients ask. The metrics
        are absent while Spark is not running, and if the JVM does not answer within two seconds. Metrics that begin
        with `spark_executor_` exist only if tasks run in the JVM of the driver."""
    head = ["| metric | kind | labels | what it is |", "| --- | --- | --- | --- |"]
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS)
    end = f"Buckets of histograms end at {bounds} seconds and at infinity."
    second = [textwrap.dedent(beside), "\n".join([*head, *engine])]
    return joined(["# Metrics", MADE, textwrap.dedent(intro), "\n".join([*head, *rows]), end, *second])


def state_schema() -> str:
    """The JSON schema of `/api/state`."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(Document).json_schema(mode="serialization"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
