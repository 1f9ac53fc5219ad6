"""State cut into many more parts than there are cores on one machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Stateful
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.sql.shuffle.partitions"
# Each part of each operator's state is a task and a file or two in every batch.
_MOST_A_CORE = 16
# Where the number of cores is not said: more parts than a machine of sixteen cores has use for.
_MOST = 200


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Queries with state, in one process; Spark cuts what has no state as it sees fit."""
    conf = query.spark
    master = conf.get("spark.master", "local" if facts else "")
    cores = re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", master)
    default = "200" if facts is None and cores else ""
    said = conf.get(_KEY, default)
    if master.split("[")[0] != "local" or not said.isdigit() or next(query.of(Stateful), None) is None:
        return
    if (cores and int(said) <= _MOST_A_CORE * int(cores[1])) or (not cores and int(said) < _MOST):
        return
    number = cores[1] if cores else "16"
    yield CODE.warning(
        f"each batch runs {said} tasks for every operator with state, on one machine",
        facts.places.value("spark", _KEY) if facts else query.span,
        why="a task costs milliseconds and files of its own however few rows it has; the number is kept in the "
        "checkpoint with the first batch and cannot be changed after it",
        fix="remove the line: there is then one for each core" if facts else f"set {_KEY} to {number}",
        query=query.name if facts is None else None,
    )
