"""The logs that sources keep in a checkpoint: is all there that the next batch needs?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checkpoint.filelog import COMPACT
from millstream.checkpoint.record import read
from millstream.checkpoint.wrong import COPY, Damage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.checkpoint.folder import Offsets


def of_sources(folder: Path, planned: Offsets, *, done: bool) -> Iterator[Damage]:
    """What is wrong with `sources/`, given the newest planned batch and whether it was committed."""
    record = read(folder)
    for index, text in enumerate(planned.sources):
        told = json.loads(text) if text else None
        if not isinstance(told, dict):
            continue
        log = folder / "sources" / str(record.log(index) if record else index)
        if "logOffset" in told:
            yield from _of_files(log, int(told["logOffset"]))
        elif planned.batch_id == 0 and not done and all(isinstance(part, dict) for part in told.values()):
            yield from _of_start(log / "0")


def _of_files(log: Path, newest: int) -> Iterator[Damage]:
    """Entries since the last compacted one, which Spark reads to know the files it has taken."""
    known = {file.name for file in log.iterdir()} if log.is_dir() else set()
    compacted = [
        int(name.removesuffix(COMPACT))
        for name in known
        if name.endswith(COMPACT) and name.removesuffix(COMPACT).isdigit()
    ]
    first = max(compacted, default=-1)
    if first >= 0:
        names = [f"{first}{COMPACT}", *(str(number) for number in range(first + 1, newest + 1))]
    else:
        names = [str(number) for number in range(newest + 1)]
    for name in names:
        file = log / name
        state = "is gone" if name not in known else None if file.read_bytes()[:1] == b"v" else "is torn"
        if state:
            yield Damage(
                f"{file} {state}",
                file,
                "it says which files were read; without it they would be read again, or not at all",
                COPY,
            )
            return


def _of_start(file: Path) -> Iterator[Damage]:
    """Where the first batch began, which is still to be run."""
    if not file.exists() or not file.read_bytes().strip(b"\0 \n"):
        yield Damage(
            f"{file} {'is empty' if file.exists() else 'is gone'}",
            file,
            "the first batch is not done and nothing else says where it began: it could get other rows",
            COPY,
        )
