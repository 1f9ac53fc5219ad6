"""Check that the files of each state store lead to the version from which the next batch continues."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checkpoint.integrity.damage_report import COPY, CheckpointDamage
from millstream.checkpoint.remote.path import relative_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checkpoint.remote.path import CheckpointPath

# Suffixes of complete stores of a version, and of the changes that lead to one: Spark's own provider, then RocksDB's.
_COMPLETE = (".snapshot", ".zip")
_CHANGES = (".delta", ".changelog")


def check_state_stores(
    folder: CheckpointPath, version: int, partitions: int | None
) -> Iterator[CheckpointDamage]:
    """Yield the damage of `state/`, if the next batch continues from `version` with this number of partitions.

    Stores are compared with each other: one that lacks the version while another has it has lost a file. If none has
    it, the state is of an unknown kind, and Spark checks it. Folders of further partitions are not checked: Spark
    leaves them after state is repartitioned to fewer, and they exist before a batch to which a checkpoint is rewound.
    """
    stores = [
        store for operator in _list_numbered(folder / "state") for store in _list_stores(operator, partitions)
    ]
    missing = {store: _find_missing(store, version) for store in stores}
    if version == 0 or all(missing.values()):
        return
    for store, file in missing.items():
        if file is not None:
            state = "is empty" if file.is_file() else "is gone"
            yield CheckpointDamage(
                f"{file} {state}",
                file,
                f"the state from which the next batch continues cannot be read in {relative_path(store, folder)}: "
                "sums and joins would lack what it contained",
                COPY,
            )


def delete_later_versions(folder: CheckpointPath, version: int) -> None:
    """Delete the files of `state/` that lead to versions after `version`.

    Spark loads the newest snapshot up to the version that it needs, and would find one of another past.
    """
    for operator in _list_numbered(folder / "state"):
        for store in _list_stores(operator, None):
            for (number, _), file in _list_versions(store).items():
                if number > version:
                    file.unlink()
                    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _list_stores(operator: CheckpointPath, most: int | None) -> Iterator[CheckpointPath]:
    """Yield the folders of one operator's stores: a partition, or one of the several stores in it.

    Yields those of the first `most` partitions, or all. Metadata of version 1 has the number of the first batch,
    also after the state was repartitioned.
    """
    partitions = _list_numbered(operator)
    store_folders = [
        sorted(path for path in part.iterdir() if path.is_dir() and path.name[0] not in "_.")
        for part in partitions
    ]
    names = {path.name for folders in store_folders for path in folders if _list_versions(path)}
    count = max(_count_partitions(operator), len(partitions))
    for number in range(count if most is None else min(count, most)):
        part = operator / str(number)
        yield from (part / name for name in sorted(names)) if names else (part,)


def _count_partitions(operator: CheckpointPath) -> int:
    """Return the number of partitions in the operator's own metadata, or 0 if it is unknown."""
    file = operator / "_metadata" / "metadata"
    try:
        stores = json.loads(file.read_text().splitlines()[1])["stateStoreInfo"]
        return max(int(store["numPartitions"]) for store in stores)
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0


def _find_missing(store: CheckpointPath, version: int) -> CheckpointPath | None:
    """Return the first missing or empty file of those that lead to a version, or None if there is none."""
    versions = _list_versions(store)
    newest_whole = max((number for (number, kind), file in versions.items() if kind in _COMPLETE and number <= version
                 and file.stat().st_size), default=0)  # fmt: skip
    kind = next((kind for _, kind in versions if kind in _CHANGES), None)
    if kind is None:
        return None if newest_whole == version else store / (f"{version}.zip" if versions else "")
    for number in range(newest_whole + 1, version + 1):
        file = versions.get((number, kind))
        if file is None:
            return store / f"{number}{kind}"
        if not file.stat().st_size:
            return file
    return None


def _list_versions(store: CheckpointPath) -> dict[tuple[int, str], CheckpointPath]:
    """Return the files of a store by version and kind. `3_<uuid>.zip` is version 3 as well."""
    if not store.is_dir():
        return {}
    return {
        (int(number), file.suffix): file
        for file in store.iterdir()
        if (number := file.stem.partition("_")[0]).isdigit() and file.suffix in (*_COMPLETE, *_CHANGES)
    }


def _list_numbered(folder: CheckpointPath) -> list[CheckpointPath]:
    """Return the folders that are named by a number, in order."""
    if not folder.is_dir():
        return []
    return sorted(
        (path for path in folder.iterdir() if path.is_dir() and path.name.isdigit()),
        key=lambda path: int(path.name),
    )
