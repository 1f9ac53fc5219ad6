"""Speculative execution is switched on for a sink to which Spark's tasks write directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.speculation"


def check(facts: Facts) -> Iterator[Finding]:
    """Check cluster masters only: in local mode Spark starts no task twice."""
    conf = facts.pipeline.spark
    master = str(conf.get("spark.master", "local"))
    if str(conf.get(_KEY, "false")).lower() != "true" or master.split("[")[0] == "local":
        return
    for query, _, entry in facts.sinks():
        mode = facts.pipeline.queries[query].output_mode
        if entry.sink.writes_in_tasks and entry.sink.guarantee(mode)[0] is not Guarantee.EXACTLY_ONCE:
            yield CODE.warning(
                f"with {_KEY} a slow task may run twice at the same time, and both attempts then send their rows "
                f"to {entry.sink.describe()}",
                facts.places.key("spark", _KEY),
                why="neither attempt knows about the other, and rows that were sent cannot be withdrawn",
                fix="remove the line",
                query=query,
            )
            return
