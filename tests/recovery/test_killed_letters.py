"""Runs that are killed while they keep dead letters: each is there once, wherever they are kept.

One process dies for all kinds of stores.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import sweep
from delta_tables import read_rows
from millstream.connectors import registry
from millstream.connectors.api.dead_letters import read_unique
from recovery import dying_commands, outage, same_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

BATCHES = 3
# Each run dies a point further. A second batch is merged into the sink's Delta table without Spark. Kafka comes last,
# as a broker ends a transaction that is open for a minute.
POINTS = {
    "delta": (("delta.committed", 2), ("letters.kept", 1)),
    "postgres": (("postgres.open", 1), ("postgres.committed", 1), ("letters.kept", 1)),
    "kafka": (("kafka.sent", 1), ("kafka.committed", 1), ("letters.kept", 1)),
}
# `letters.kept` is of no kind: the one of Delta is enough for a part.
DEATHS = 3 if sweep.WHOLE else 2

Killed = dict[str, tuple["Path", dict[str, Any]]]


def box(kind: str, stack: Endpoints, folder: Path) -> dict[str, Any]:
    """A fresh place of that kind."""
    if kind == "delta":
        return {"path": str(folder / "letters")}
    if kind == "postgres":
        return {"url": stack.postgres, "table": "killed_letters", "ledger_schema": "killed_letters"}
    return {"bootstrap_servers": stack.kafka, "topic": "killed-letters", "ledger_topic": "killed-ledger"}


def write_project(folder: Path, kind: str, settings: dict[str, Any]) -> None:
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


@pytest.fixture(scope="module")
def killed(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """The projects as their killed runs left them, by the kind of their store, each with its settings."""
    projects: Killed = {}
    for kind in POINTS:
        folder = tmp_path_factory.mktemp(kind)
        projects[kind] = folder, box(kind, stack, folder)
        write_project(folder, kind, projects[kind][1])
    log = tmp_path_factory.mktemp("dying") / "spark.log"
    for number in range(DEATHS):
        cases = [
            (str(projects[kind][0]), dying_commands.RUN, *points[number])
            for kind, points in POINTS.items()
            if number < len(points)
        ]
        dying_commands.die(cases, log)
    return projects


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", POINTS)
def test_each_letter_is_kept_once(kind: str, killed: Killed, spark: SparkSession) -> None:
    folder, settings = killed[kind]

    same_process.catch_up(spark, folder)

    dead_letters = read_unique(registry.dead_letter_stores()[kind].model_validate(settings))
    assert sorted(json.loads(dead_letter.value or b"")["key"] for dead_letter in dead_letters) == [
        f"{what} {n}" for what in ("bad", "low") for n in range(BATCHES)
    ]
    assert sorted(read_rows(folder / "table")) == [(key, BATCHES - 1) for key in outage.KEYS]
