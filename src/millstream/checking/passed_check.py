"""Remember that a spec passed its check, so that a run of the same spec with the same versions does not repeat it."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream import __version__
from millstream.checkpoint.atomic_file import write_durably
from millstream.connectors.api.function_sink import FunctionSink
from millstream.pipeline.model import Format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.pipeline.spec_file import LoadedSpec

FILE = Path(".millstream") / "passed-check.json"
# A static source with more files than this is not compared file by file, and its check is repeated.
MOST_FILES = 2000


@dataclass(frozen=True)
class PassedCheck:
    """What a run needs of a check without findings: the data of its page, and the guarantees of its sinks."""

    page: dict[str, Any]
    guarantees: list[dict[str, Any]]


def recall(loaded: LoadedSpec) -> PassedCheck | None:
    """Return the result of the last check of this spec, or None if anything that it read may have changed."""
    pipeline = loaded.pipeline
    if pipeline is None or (fingerprint := compute_fingerprint(loaded)) is None:
        return None
    try:
        record = json.loads((pipeline.folder / FILE).read_text(encoding="utf-8"))
        if record["fingerprint"] != fingerprint:
            return None
        return PassedCheck(record["page"], record["guarantees"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(loaded: LoadedSpec, passed: PassedCheck) -> None:
    """Keep the result of a check that found nothing. A folder that cannot be written keeps none."""
    pipeline = loaded.pipeline
    if pipeline is None or (fingerprint := compute_fingerprint(loaded)) is None:
        return
    try:
        write_durably(pipeline.folder / FILE, json.dumps({"fingerprint": fingerprint, **asdict(passed)}))
    except OSError:
        return


def compute_fingerprint(loaded: LoadedSpec) -> str | None:
    """Return a sum of all that a check reads, or None if that cannot be listed.

    It covers the spec with its variables, its SQL, the files of static sources, and the versions. A user's Python may
    read or import anything, so a spec with functions has none.
    """
    pipeline = loaded.pipeline
    if pipeline is None or _may_read_anything(pipeline):
        return None
    parts = [
        __version__,
        _package_time(),
        sys.version,
        version("pyspark"),
        pipeline.model_dump_json(),
    ]
    parts += [f"{name}\n{text}" for name, text in sorted(loaded.texts.items())]
    for entry in pipeline.sources.values():
        if _is_opened(entry):
            listed = _list_files(entry)
            if listed is None:
                return None
            parts += listed
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _may_read_anything(pipeline: Pipeline) -> bool:
    """Return whether the spec has Python, or refers to files that its texts do not include."""
    return (
        any(view.sql is None for view in pipeline.views.values())
        or any(entry.format is Format.AVRO for entry in pipeline.sources.values())
        or any(isinstance(to.sink, FunctionSink) for query in pipeline.queries.values() for to in query.to)
    )


def _is_opened(entry: SourceEntry) -> bool:
    """Return whether a check opens the source to read its columns."""
    return (entry.source.columns or (None if entry.source.has_payload else entry.ddl)) is None


def _list_files(entry: SourceEntry) -> list[str] | None:
    """Return the files of a local static source with size and time, or None if it is not in local files."""
    path = getattr(entry.source, "path", None)
    local = getattr(path, "local", None)
    if not isinstance(local, Path):
        return None
    try:
        listed = []
        for number, file in enumerate(_walk(local)):
            if number >= MOST_FILES:
                return None
            status = file.stat()
            listed.append(f"{file}:{status.st_size}:{status.st_mtime_ns}")
    except OSError:
        return None
    return listed or None


def _walk(path: Path) -> Iterator[Path]:
    yield from (file for file in sorted(path.rglob("*")) if file.is_file()) if path.is_dir() else [path]


def _package_time() -> str:
    """Return the time of the newest file of this package, which changes while it is developed."""
    files = Path(__file__).parents[1].rglob("*.py")
    return str(max(file.stat().st_mtime_ns for file in files))
