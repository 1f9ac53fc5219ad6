"""Sinks of every kind, and where the writer of each is killed in its last batch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.targets import IN_SANDBOX, sandboxed
from millstream.connectors import registry
from recovery.dying_writer import ROWS, batch, writer_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from recovery.dying_writer import Settings, WriterCase

LAST = 1
ALL = list(range(ROWS * (LAST + 1)))

POSTGRES = [
    (mode, key, point, held)
    for mode, key in (("append", ()), ("update", ("id",)))
    for point, held in (("before_commit", False), ("after_commit", True))
]
DELTA = [(mode, key, held) for mode, key in (("append", ()), ("update", ("id",))) for held in (False, True)]
CHANGES = {False: "delta.before", True: "delta.committed"}
FILES = [("files.staged", False), ("files.committed", True), ("files.published", True)]
OTHERS = [(kind, point) for kind in sorted(IN_SANDBOX) for point in registry.sinks()[kind].system.failpoints]


class WrittenSinks:
    """The settings of the sinks, by the name of their case."""

    def __init__(self, stack: Endpoints, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self._sinks: dict[str, Settings] = {}

    def settings(self, name: str) -> Settings:
        """The sink of a case."""
        if name not in self._sinks:
            self._sinks[name] = self._settings(name)
        return self._sinks[name]

    def _settings(self, name: str) -> Settings:
        kind, mode, _ = name.split("-")
        place = str(self.folder / name)
        key = ("id",) if mode == "update" else ()
        match kind:
            case "postgres":
                table = name.replace("-", "_")
                return kind, {
                    "url": self.stack.postgres, "table": table, "merge_on": key, "ledger_schema": table
                }  # fmt: skip
            case "delta":
                return kind, {"path": place, "merge_on": key}
            case "changes":
                cdc = {"keys": "text", "sequence_by": "id", "apply_as_deletes": "id % 10 = 0"}
                return "delta", {"path": place, "cdc": cdc}
            case "files":
                return "parquet", {"path": place, "layout": "by_batch"}
        return kind, sandboxed(kind, self.folder / name).model_dump(mode="json")

    @property
    def cases(self) -> list[WriterCase]:
        """All that die together: name, sink, mode and point."""
        points = {
            **{f"postgres-{mode}-{point}": point for mode, _, point, _ in POSTGRES},
            **{f"delta-{mode}-True": "after_commit" for mode, _, held in DELTA if held},
            **{f"changes-append-{held}": point for held, point in CHANGES.items()},
            **{f"files-update-{point}": point for point, _ in FILES},
            **{f"{kind}-append-{point}": point for kind, point in OTHERS},
        }
        return [(name, self.settings(name), name.split("-")[1], point) for name, point in points.items()]

    def delta_without_last_commit(self, mode: str) -> Settings:
        """A copy of the table in this mode with data files in no entry of the log, as a death before a commit."""
        settings = self.settings(f"delta-{mode}-False")
        table = Path(settings[1]["path"])
        shutil.copytree(self.settings(f"delta-{mode}-True")[1]["path"], table)
        max((table / "_delta_log").glob("*.json")).unlink()
        for stale in (table / "_delta_log").glob("*.crc"):
            stale.unlink()
        return settings


def start_again(settings: Settings, mode: str, spark: SparkSession, *, held: bool) -> None:
    """The next start: Spark hands the unfinished batch over once more."""
    kind, fields = settings
    writer: Any = writer_of(registry.sinks()[kind].model_validate(fields), mode)
    try:
        writer.open(spark, batch(spark, 0).schema)
        assert writer.has_batch(LAST) is held
        assert writer.write(batch(spark, LAST), LAST).is_skipped is held
    finally:
        writer.close()
