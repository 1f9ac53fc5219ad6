"""Projects that keep dead letters, one for each kind of their stores, and where their runs are killed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import yaml

import sweep
from recovery import dying_commands, outage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints
    from recovery.dying_commands import Case

BATCHES = 3
# In a whole sweep each run dies a point further; in a part one dies before the letters are committed, one after it,
# and one when they are kept. A second batch is merged into the sink's Delta table without Spark.
POINTS = {
    "delta": (("letters.kept", 1), ("delta.committed", 2)),
    "postgres": (("postgres.committed", 1), ("postgres.open", 1), ("letters.kept", 1)),
    "kafka": (("kafka.sent", 1), ("kafka.committed", 1), ("letters.kept", 1)),
}
DEATHS = 3 if sweep.WHOLE else 1


class LetterProjects:
    """The folder and the settings of the store of each kind's project."""

    def __init__(self, stack: Endpoints, new_folder: Callable[[], Path]) -> None:
        self.folders = {kind: new_folder() for kind in POINTS}
        self.stores = {kind: _store(kind, stack, folder) for kind, folder in self.folders.items()}
        for kind, folder in self.folders.items():
            _write_project(folder, kind, self.stores[kind])

    def cases(self, death: int = 0) -> list[Case]:
        """The runs that die this time; Kafka comes last, as a broker ends a transaction that is open for a minute."""
        return [
            (str(self.folders[kind]), dying_commands.RUN, *points[death])
            for kind, points in POINTS.items()
            if death < len(points)
        ]


def _store(kind: str, stack: Endpoints, folder: Path) -> dict[str, Any]:
    """A fresh place of that kind."""
    if kind == "delta":
        return {"path": str(folder / "letters")}
    if kind == "postgres":
        return {"url": stack.postgres, "table": "killed_letters", "ledger_schema": "killed_letters"}
    return {"bootstrap_servers": stack.kafka, "topic": "killed-letters", "ledger_topic": "killed-ledger"}


def _write_project(folder: Path, kind: str, settings: dict[str, Any]) -> None:
    """A project with its input, of which each batch has a malformed row and one that is not as expected."""
    spec = outage.spec(folder, {"delta": {"path": str(folder / "table"), "merge_on": ["key"]}})
    spec["sources"]["orders"]["on_malformed"] = "dead_letter"
    spec["sources"]["orders"]["expect"] = {"counted": {"that": "n >= 0", "otherwise": "dead_letter"}}
    (folder / "pipeline.yml").write_text(yaml.safe_dump({**spec, "dead_letters": {kind: settings}}))
    outage.write_input(folder, BATCHES)
    for batch, file in enumerate(sorted((folder / "in").iterdir())):
        when = file.stat().st_mtime
        rejected = ({"key": f"bad {batch}", "n": "many"}, {"key": f"low {batch}", "n": -1})
        file.write_text("\n".join([file.read_text(), *map(json.dumps, rejected)]))
        os.utime(file, (when, when))
