"""State is split into many more partitions than one machine has cores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import StatefulOperator
from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.sql.shuffle.partitions"
# Each partition of each operator's state is a task and one or two files in every batch.
_MAX_PER_CORE = 16
# If the number of cores is unknown: more partitions than a machine of sixteen cores can use.
_MAX_PARTITIONS = 200


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check stateful queries in local mode; Spark chooses the partitions of stateless ones."""
    conf = query.spark
    master = conf.get("spark.master", "local" if facts else "")
    cores = re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", master)
    default = "200" if facts is None and cores else ""
    partitions = conf.get(_KEY, default)
    if (
        master.split("[")[0] != "local"
        or not partitions.isdigit()
        or next(query.of(StatefulOperator), None) is None
    ):
        return
    if (cores and int(partitions) <= _MAX_PER_CORE * int(cores[1])) or (
        not cores and int(partitions) < _MAX_PARTITIONS
    ):
        return
    suggestion = cores[1] if cores else "16"
    yield CODE.warning(
        f"each batch runs {partitions} tasks for every stateful operator, on a single machine",
        facts.places.value("spark", _KEY) if facts else query.span,
        why="each task takes milliseconds and writes its own files, even if it has few rows; the number is stored "
        "in the checkpoint with the first batch and cannot be changed later",
        fix="remove the line: the default is one partition per core"
        if facts
        else f"set {_KEY} to {suggestion}",
        query=query.name if facts is None else None,
    )
