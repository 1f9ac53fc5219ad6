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
POINTS = {
    "postgres": ("postgres.open", "postgres.committed", "letters.kept"),
    "kafka": ("kafka.sent", "kafka.committed", "letters.kept"),
}


def box(kind: str, stack: Endpoints) -> dict[str, Any]:
    """A fresh place of that kind."""
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
    spec = outage.spec(tmp_path, {"parquet": {"path": str(tmp_path / "table"), "layout": "by_batch"}})
    spec["sources"]["orders"]["on_malformed"] = "dead_letter"
    settings = box(kind, stack)
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump({**spec, "dead_letters": {kind: settings}}))
    outage.write_input(tmp_path, BATCHES)
    for batch, file in enumerate(sorted((tmp_path / "in").iterdir())):
        when = file.stat().st_mtime
        file.write_text(f"{file.read_text()}\n" + json.dumps({"key": f"bad {batch}", "n": "many"}))
        os.utime(file, (when, when))

    # The last is of no kind: once is enough for a part.
    for point in POINTS[kind] if sweep.WHOLE or kind == "kafka" else POINTS[kind][:2]:
        assert killed(tmp_path, f"{point}=kill@1"), point
    same_process.catch_up(spark, tmp_path)

    dead_letters = read_unique(registry.dead_letter_stores()[kind].model_validate(settings))
    assert sorted(json.loads(dead_letter.value or b"")["key"] for dead_letter in dead_letters) == [
        f"bad {n}" for n in range(BATCHES)
    ]
