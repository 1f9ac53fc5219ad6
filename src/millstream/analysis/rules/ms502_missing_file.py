"""A source reads a local path without files."""

from __future__ import annotations

from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report an error for a static table, and a warning for a stream, whose folder may be created before the run."""
    for name, entry in facts.pipeline.sources.items():
        location = getattr(entry.source, entry.source.main, None)
        path = location.local if isinstance(location, Location) else None
        if path is None or _may_exist(path):
            continue
        message = f"source '{name}' reads {_shorten(facts, str(path))}, which does not exist"
        span = facts.places.value("sources", name, "source")
        reason = "Spark does not start a query if the folder of a source is missing"
        fix = "create it, or correct the path, which is relative to the folder of the spec"
        yield (CODE.error if entry.static else CODE.warning)(message, span, why=reason, fix=fix)


def _may_exist(path: Path) -> bool:
    """Return whether the path, or a file that matches its pattern, exists, or is in a folder closed to this user."""
    try:
        # From Python 3.14 on, `exists` is also false in a closed folder.
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # ValueError: no file has the null character in its name.
        return _has_matching_file(path)
    except PermissionError:
        pass
    except OSError:
        # A loop of symbolic links, or a name that is too long.
        return False
    return True


def _has_matching_file(path: Path) -> bool:
    """Return whether a glob pattern matches any file."""
    pattern = path.relative_to(path.anchor)
    return has_magic(str(path)) and next(Path(path.anchor).glob(str(pattern)), None) is not None


def _shorten(facts: Facts, path: str) -> str:
    return path.removeprefix(f"{facts.pipeline.folder}/")
