"""Spark settings that the spec's own words stand for, and that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_INSTEAD = {
    "spark.sql.streaming.checkpointLocation": (
        "each query is given a checkpoint folder of its own, whatever this says",
        "write it as 'defaults: {checkpoints: FOLDER}'",
    ),
}


def check(facts: Facts) -> Iterator[Finding]:
    """Only what is surely not looked at."""
    for key in facts.pipeline.spark:
        if key in _INSTEAD:
            why, fix = _INSTEAD[key]
            yield CODE.warning(f"'{key}' changes nothing", facts.places.key("spark", key), why=why, fix=fix)
