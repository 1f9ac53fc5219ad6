"""Spark settings have no effect, because the spec has its own setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_REPLACEMENTS = {
    "spark.sql.streaming.checkpointLocation": (
        "Millstream gives each query its own checkpoint folder and ignores this setting",
        "to choose the folder of the checkpoints, write 'defaults: {checkpoints: FOLDER}'",
    ),
}


def check(facts: Facts) -> Iterator[Finding]:
    """Report only settings that certainly have no effect."""
    for key in facts.pipeline.spark:
        if key in _REPLACEMENTS:
            reason, fix = _REPLACEMENTS[key]
            yield CODE.warning(f"'{key}' has no effect", facts.places.key("spark", key), why=reason, fix=fix)
