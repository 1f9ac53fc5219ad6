"""The files of state stores: can each be brought to the version that the next batch goes on from?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checkpoint.wrong import COPY, Damage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A whole store of a version, and the changes that lead to one: Spark's own provider, then RocksDB's.
_WHOLE = (".snapshot", ".zip")
_CHANGES = (".delta", ".changelog")


def of_state(folder: Path, version: int) -> Iterator[Damage]:
    """What is wrong with `state/`, when the next batch goes on from `version`.

    Stores are compared with each other: one that lacks the version while another has it has lost a file.
    Where none has it, the state is of a kind that is not known here, and Spark judges it.
    """
    stores = [store for operator in _numbered(folder / "state") for store in _stores(operator)]
    missing = {store: _missing(store, version) for store in stores}
    if version == 0 or all(missing.values()):
        return
    for store, file in missing.items():
        if file is not None:
            state = "is empty" if file.is_file() else "is gone"
            yield Damage(
                f"{file} {state}",
                file,
                f"the state that the next batch goes on from cannot be read in {store.relative_to(folder)}: "
                "sums and joins would lack what it held",
                COPY,
            )


def _stores(operator: Path) -> Iterator[Path]:
    """The folders of one operator's stores: a partition, or one of the several stores in it."""
    found = _numbered(operator)
    below = [
        sorted(one for one in part.iterdir() if one.is_dir() and one.name[0] not in "_.") for part in found
    ]
    names = {one.name for several in below for one in several if _versions(one)}
    count = max(_partitions(operator), len(found))
    for number in range(count):
        part = operator / str(number)
        yield from (part / name for name in sorted(names)) if names else (part,)


def _partitions(operator: Path) -> int:
    """How many partitions the operator's own metadata says it has; 0 where it does not."""
    file = operator / "_metadata" / "metadata"
    try:
        stores = json.loads(file.read_text().splitlines()[1])["stateStoreInfo"]
        return max(int(store["numPartitions"]) for store in stores)
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0


def _missing(store: Path, version: int) -> Path | None:
    """The first file that is not there, or is empty, of those that lead to a version; None when all are."""
    known = _versions(store)
    whole = max((number for (number, kind), file in known.items() if kind in _WHOLE and number <= version
                 and file.stat().st_size), default=0)  # fmt: skip
    kind = next((kind for _, kind in known if kind in _CHANGES), None)
    if kind is None:
        return None if whole == version else store / (f"{version}.zip" if known else "")
    for number in range(whole + 1, version + 1):
        file = known.get((number, kind))
        if file is None:
            return store / f"{number}{kind}"
        if not file.stat().st_size:
            return file
    return None


def _versions(store: Path) -> dict[tuple[int, str], Path]:
    """The files of a store by version and kind; `3_<uuid>.zip` is version 3 as well."""
    if not store.is_dir():
        return {}
    return {
        (int(number), file.suffix): file
        for file in store.iterdir()
        if (number := file.stem.partition("_")[0]).isdigit() and file.suffix in (*_WHOLE, *_CHANGES)
    }


def _numbered(folder: Path) -> list[Path]:
    """Folders that are named by a number, in order."""
    if not folder.is_dir():
        return []
    return sorted(
        (one for one in folder.iterdir() if one.is_dir() and one.name.isdigit()),
        key=lambda one: int(one.name),
    )
