"""Find the folders that `reset --sinks` deletes, and refuse those that something else in the spec uses."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from millstream.diagnostics.failure import CheckpointError
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.connectors.api.sink import Sink
    from millstream.pipeline.model import Pipeline


_BY_HAND = "leave --sinks out, and delete the files of the sink yourself"


class _Use(NamedTuple):
    """A local path that is in use: who uses it how, as in `query 'late' also writes`, and what the user can do."""

    path: Path
    who: str
    fix: str
    is_deep: bool = True
    """Whether all folders below the path are used too; if not, only partitions, such as `day=2026-01-01`."""


def list_sink_folders(pipeline: Pipeline, names: Sequence[str]) -> list[Path]:
    """Return the local folders to which these queries write.

    Raises `CheckpointError` if one of them contains a path that another part of the spec uses, or is inside of one.
    """
    uses = list(_list_uses(pipeline, names))
    folders: list[Path] = []
    for name in names:
        for entry in pipeline.queries[name].to:
            folder = find_folder(entry.sink)
            if folder is None or folder in folders:
                continue
            if pipeline.folder.resolve().is_relative_to(folder.resolve()):
                raise CheckpointError(
                    f"--sinks cannot delete {folder}: the spec is in this folder",
                    _BY_HAND,
                )
            has_partitions = bool(getattr(entry.sink, "partition_by", ()))
            for use in uses:
                if _overlap(folder, use, has_partitions=has_partitions):
                    here = from_project(pipeline, folder)
                    used = from_project(pipeline, use.path)
                    raise CheckpointError(f"--sinks cannot delete {here}: {use.who} {used}", use.fix)
            folders.append(folder)
    return folders


def find_folder(sink: Sink) -> Path | None:
    """Return the folder that a sink has for itself on this machine, or None for any other sink."""
    path = getattr(sink, "path", None)
    # A sink that writes to one table of a file has the name of the table too.
    is_own = isinstance(path, str) and str(path) in sink.writes_to() and Path(path).is_absolute()
    return Path(str(path)) if is_own else None


def from_project(pipeline: Pipeline, path: CheckpointPath) -> str:
    """Return the path from the project's folder, if it is inside."""
    return str(path).removeprefix(f"{pipeline.folder}/")


def _list_uses(pipeline: Pipeline, names: Sequence[str]) -> Iterator[_Use]:
    """Yield the local paths of a pipeline, except the checkpoints and the folders of sinks of these queries."""
    for name, query in pipeline.queries.items():
        reset_all = f"reset both: millstream reset {' '.join((*names, name))} --sinks; or leave --sinks out"
        for entry in query.to:
            places = (getattr(entry.sink, "path", None), *entry.sink.writes_to())
            if name not in names:
                fix = _BY_HAND if find_folder(entry.sink) is None else reset_all
                yield from (_Use(path, f"query '{name}' also writes", fix) for path in _local(*places))
            elif find_folder(entry.sink) is None:
                label = f"{entry.sink.kind}, another sink of query '{name}', writes"
                yield from (_Use(path, label, _BY_HAND) for path in _local(*places))
        if name not in names:
            for path in _local(pipeline.checkpoint(name)):
                yield _Use(path, f"the checkpoint of query '{name}' is", reset_all)
    for name, source_entry in pipeline.sources.items():
        source = source_entry.source
        fix = "leave --sinks out; if you empty the folder yourself, also reset the queries that read it"
        for path in _local(getattr(source, "path", None), *source.reads_from()):
            # The setting of sources that, without it, read only the files of the folder itself and of its partitions.
            is_deep = getattr(source, "recursive_file_lookup", True)
            yield _Use(path, f"source '{name}' reads", fix, is_deep=is_deep)
        for path in _local(getattr(source, "archive_to", None)):
            yield _Use(path, f"source '{name}' archives its files to", _BY_HAND)
    for path in _local(getattr(pipeline.letters, "path", None)):
        if path.exists():
            yield _Use(path, "the store of dead letters is", _BY_HAND)


def _local(*places: object) -> Iterator[Path]:
    """Yield the paths of those places that are on this machine."""
    for place in places:
        path = place.local if isinstance(place, Location) else place
        if isinstance(path, Path | str) and Path(path).is_absolute():
            yield Path(path)


def _overlap(folder: Path, use: _Use, *, has_partitions: bool) -> bool:
    """Return whether a folder contains what is used, or is inside of it. The path of a use can be a pattern."""
    parts = use.path.parts
    fixed = tuple(takewhile(lambda part: not set(part) & set("*?[{\\"), parts))
    # Hadoop's `[^a]` and `{a/b,c}` are not Python's. From such a part on, the pattern matches any folder.
    pattern = tuple(takewhile(lambda part: not set(part) & set("[{\\"), parts[len(fixed) :]))
    real, above = folder.resolve(), Path(*fixed).resolve()
    if not real.is_relative_to(above):
        return above.is_relative_to(real)
    inside = real.relative_to(above).parts
    if not all(map(fnmatchcase, inside, pattern)):
        return False
    below = inside[len(parts) - len(fixed) :]
    return not below or use.is_deep or has_partitions or any("=" in part for part in below)
