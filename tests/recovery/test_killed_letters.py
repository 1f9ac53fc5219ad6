"""A run that is killed while it keeps dead letters: each is there once, wherever they are kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import sweep
from millstream.connectors import registry
from millstream.connectors.api.dead_letters import read_unique
from millstream.connectors.failpoints import VARIABLE
from recovery import outage, same_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

BATCHES = 3
# A second batch is merged into the sink's Delta table without Spark.
POINTS = {
    "postgres": ("postgres.open=kill@1", "postgres.committed=kill@1", "letters.kept=kill@1"),
    "kafka": ("kafka.sent=kill@1", "kafka.committed=kill@1", "letters.kept=kill@1"),
    "delta": ("delta.committed=kill@2", "letters.kept=kill@1"),
}


def box(kind: str, stack: Endpoints, folder: Path) -> dict[str, Any]:
    """A fresh place of that kind."""
    if kind == "delta":
        return {"path": str(folder / "letters")}
    if kind == "postgres":
        return {"url": stack.postgres, "table": "killed_letters", "ledger_schema": "killed_letters"}
    return {"bootstrap_servers": stack.kafka, "topic": "killed-letters", "ledger_topic": "killed-ledger"}


def killed(folder: Path, armed: str) -> bool:
    """Run it until it is killed at that point, or else caught up."""
    command = [sys.executable, "-m", "millstream", "run", "--until-caught-up"]
    env = {**os.environ, VARIABLE: armed}
    result = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    return result.returncode == -signal.SIGKILL


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", POINTS)
def test_each_letter_is_kept_once(kind: str, spark: SparkSession, tmp_path: Path, stack: Endpoints) -> None:
    spec = outage.spec(tmp_path, {"delta": {"path": str(tmp_path / "table"), "merge_on": ["key"]}})
    spec["sources"]["orders"]["on_malformed"] = "dead_letter"
    spec["sources"]["orders"]["expect"] = {"counted": {"that": "n >= 0", "otherwise": "dead_letter"}}
    settings = box(kind, stack, tmp_path)
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump({**spec, "dead_letters": {kind: settings}}))
    outage.write_input(tmp_path, BATCHES)
    for batch, file in enumerate(sorted((tmp_path / "in").iterdir())):
        when = file.stat().st_mtime
        rejected = ({"key": f"bad {batch}", "n": "many"}, {"key": f"low {batch}", "n": -1})
        file.write_text("\n".join([file.read_text(), *map(json.dumps, rejected)]))
        os.utime(file, (when, when))

    # The last is of no kind: twice is enough for a part.
    for point in POINTS[kind] if sweep.WHOLE or kind != "postgres" else POINTS[kind][:2]:
        assert killed(tmp_path, point), point
    same_process.catch_up(spark, tmp_path)

    dead_letters = read_unique(registry.dead_letter_stores()[kind].model_validate(settings))
    assert sorted(json.loads(dead_letter.value or b"")["key"] for dead_letter in dead_letters) == [
        f"{what} {n}" for what in ("bad", "low") for n in range(BATCHES)
    ]
    table = spark.read.format("delta").load(str(tmp_path / "table"))
    assert sorted(map(tuple, table.collect())) == [(key, BATCHES - 1) for key in outage.KEYS]
