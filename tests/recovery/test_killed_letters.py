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

from millstream.connectors import registry
from millstream.connectors.failpoints import VARIABLE
from millstream.connectors.letters import read
from recovery import outage

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.state import Endpoints

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


def caught_up(folder: Path, armed: str = "") -> int:
    """Run it until it is caught up; its exit code."""
    command = [sys.executable, "-m", "millstream", "run", "--until-caught-up"]
    env = {**os.environ, VARIABLE: armed}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
    return done.returncode


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", POINTS)
def test_each_letter_is_kept_once(kind: str, tmp_path: Path, stack: Endpoints) -> None:
    spec = outage.spec(tmp_path, {"parquet": {"path": str(tmp_path / "table"), "layout": "by_batch"}})
    spec["sources"]["orders"]["on_malformed"] = "dead_letter"
    settings = box(kind, stack)
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump({**spec, "dead_letters": {kind: settings}}))
    outage.put(tmp_path, BATCHES)
    for batch, file in enumerate(sorted((tmp_path / "in").iterdir())):
        when = file.stat().st_mtime
        file.write_text(f"{file.read_text()}\n" + json.dumps({"key": f"bad {batch}", "n": "many"}))
        os.utime(file, (when, when))

    for point in POINTS[kind]:
        assert caught_up(tmp_path, f"{point}=kill@1") == -signal.SIGKILL, point
    assert caught_up(tmp_path) == 0

    kept = read(registry.boxes()[kind].model_validate(settings))
    assert sorted(json.loads(one.value or b"")["key"] for one in kept) == [f"bad {n}" for n in range(BATCHES)]
