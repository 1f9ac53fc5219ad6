"""A source that reads local files where there are none."""

from __future__ import annotations

from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """An error for a table, whose rows would be missing; a warning for a stream: its folder may yet come."""
    for name, entry in facts.pipeline.sources.items():
        given = getattr(entry.source, entry.source.main, None)
        path = given.local if isinstance(given, Location) else None
        if path is None or path.exists() or _matches(path):
            continue
        said = f"source '{name}' reads {_short(facts, str(path))}, which does not exist"
        span = facts.places.value("sources", name, "source")
        why = "Spark does not start a query whose folder is missing"
        fix = "create it, or correct the path (it starts at the spec's folder)"
        yield (CODE.error if entry.static else CODE.warning)(said, span, why=why, fix=fix)


def _matches(path: Path) -> bool:
    """Does a pattern name any file?"""
    pattern = path.relative_to(path.anchor)
    return has_magic(str(path)) and next(Path(path.anchor).glob(str(pattern)), None) is not None


def _short(facts: Facts, path: str) -> str:
    return path.removeprefix(f"{facts.pipeline.folder}/")
