"""A run killed around its commit, and the start after it: each row is there once. One process dies for all cases."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from conformance.targets import IN_SANDBOX, sandboxed
from delta_tables import read_rows
from millstream.connectors import registry
from millstream.spec.output_mode import OutputMode
from recovery import dying
from recovery.dying import ROWS, batch, writer_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

# On a machine that does much else a run of three batches may take minutes.
pytestmark = pytest.mark.timeout(500)

LAST = 1
ALL = list(range(ROWS * (LAST + 1)))


Settings = tuple[str, dict[str, Any]]
POSTGRES = [
    (mode, key, point, held)
    for mode, key in (("append", ()), ("update", ("id",)))
    for point, held in (("before_commit", False), ("after_commit", True))
]
DELTA = [(mode, key, held) for mode, key in (("append", ()), ("update", ("id",))) for held in (False, True)]
CHANGES = {False: "delta.before", True: "delta.committed"}
FILES = [("files.staged", False), ("files.committed", True), ("files.published", True)]
OTHERS = [(kind, point) for kind in sorted(IN_SANDBOX) for point in registry.sinks()[kind].system.failpoints]


@dataclass(frozen=True)
class Killed:
    """Sinks as one killed process left them, by the name of their case."""

    folder: Path
    stack: Endpoints
    sinks: dict[str, Settings] = field(default_factory=dict)

    def settings(self, name: str) -> Settings:
        """The sink of a case."""
        if name not in self.sinks:
            self.sinks[name] = self._settings(name)
        return self.sinks[name]

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

    def cases(self) -> list[tuple[str, Settings, str, str]]:
        """All that die together: name, sink, mode and point."""
        points = {
            **{f"postgres-{mode}-{point}": point for mode, _, point, _ in POSTGRES},
            **{f"delta-{mode}-{held}": "after_commit" for mode, _, held in DELTA},
            **{f"changes-append-{held}": point for held, point in CHANGES.items()},
            **{f"files-update-{point}": point for point, _ in FILES},
            **{f"{kind}-append-{point}": point for kind, point in OTHERS},
        }
        return [(name, self.settings(name), name.split("-")[1], point) for name, point in points.items()]


@pytest.fixture(scope="module")
def killed(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """One process with a writer for each case, all of them at their points in their last batch, then killed."""
    result = Killed(tmp_path_factory.mktemp("killed"), stack)
    cases = result.cases()
    command = [sys.executable, dying.__file__, json.dumps(cases), str(LAST), str(result.folder / "spark.log")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    return result


def start_again(settings: Settings, mode: str, spark: SparkSession, *, held: bool) -> None:
    """The next start: Spark hands the unfinished batch over once more."""
    kind, fields = settings
    writer = writer_of(registry.sinks()[kind].model_validate(fields), mode)
    try:
        writer.open(spark, batch(spark, 0).schema)
        assert writer.has_batch(LAST) is held
        assert writer.write(batch(spark, LAST), LAST).is_skipped is held
    finally:
        writer.close()


@pytest.mark.parametrize(("mode", "key", "point", "held"), POSTGRES)
def test_postgres_holds_each_row_once(
    mode: str, key: tuple[str, ...], point: str, held: bool, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.settings(f"postgres-{mode}-{point}")

    start_again(settings, mode, spark, held=held)

    with psycopg.connect(killed.stack.postgres) as connection:
        rows = connection.execute(f"SELECT id FROM {settings[1]['table']} ORDER BY id").fetchall()
    assert settings[1]["merge_on"] == key
    assert [row[0] for row in rows] == ALL


@pytest.mark.parametrize(("mode", "key", "committed"), DELTA)
def test_delta_holds_each_row_once(
    mode: str, key: tuple[str, ...], committed: bool, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.settings(f"delta-{mode}-{committed}")
    table = Path(settings[1]["path"])
    if not committed:
        # Data files without an entry in the log: what a run leaves that dies before its commit.
        max((table / "_delta_log").glob("*.json")).unlink()
        for stale in (table / "_delta_log").glob("*.crc"):
            stale.unlink()

    start_again(settings, mode, spark, held=committed)

    assert settings[1]["merge_on"] == key
    assert sorted(id_ for (id_,) in read_rows(table, "id")) == ALL


@pytest.mark.parametrize("held", CHANGES)
def test_a_delta_table_of_changes_comes_to_the_same_rows(
    held: bool, killed: Killed, spark: SparkSession
) -> None:
    """Killed with the batch's deletions kept and its rows not committed, or with both."""
    settings = killed.settings(f"changes-append-{held}")

    start_again(settings, "append", spark, held=held)

    rows = read_rows(settings[1]["path"], "id")
    assert sorted(id_ for (id_,) in rows) == [number for number in ALL if number % 10]


@pytest.mark.parametrize(("point", "held"), FILES)
def test_folders_of_batches_hold_each_row_once(
    point: str, held: bool, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.settings(f"files-update-{point}")
    folder = settings[1]["path"]

    text = {row.id for row in spark.read.parquet(folder).collect()}
    start_again(settings, "update", spark, held=held)

    assert text == set(ALL if held else ALL[: ROWS * LAST])
    rows = spark.read.parquet(folder).orderBy("id").collect()
    assert [row.id for row in rows] == ALL


@pytest.mark.parametrize(("kind", "point"), OTHERS)
def test_any_other_kind_holds_each_row_once(
    kind: str, point: str, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.settings(f"{kind}-append-{point}")

    start_again(settings, "append", spark, held=point.endswith(".committed"))

    rows = (
        registry.sinks()[kind]
        .model_validate(settings[1])
        .read_all(spark, batch(spark, 0).schema, OutputMode.APPEND)
    )
    assert rows is not None
    assert sorted(row.id for row in rows.collect()) == ALL
