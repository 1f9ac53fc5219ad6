"""Tasks that Spark starts twice, before a sink that tasks write to by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.speculation"


def check(facts: Facts) -> Iterator[Finding]:
    """On a cluster only: in one process Spark starts no task twice."""
    conf = facts.pipeline.spark
    master = str(conf.get("spark.master", "local"))
    if str(conf.get(_KEY, "false")).lower() != "true" or master.split("[")[0] == "local":
        return
    for query, _, entry in facts.sinks():
        mode = facts.pipeline.queries[query].output_mode
        if entry.sink.in_tasks and entry.sink.guarantee(mode)[0] is not Guarantee.EXACTLY_ONCE:
            yield CODE.warning(
                f"with {_KEY} a slow task runs twice at once, and both send their rows to {entry.sink.describe()}",
                facts.places.key("spark", _KEY),
                why="neither attempt knows of the other, and what one has sent is not taken back",
                fix="remove the line",
                query=query,
            )
            return
