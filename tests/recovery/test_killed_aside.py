"""A run that sets batches aside is killed, and each replay of them too: each row comes once, in order per key."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from millstream.connectors.failpoints import VARIABLE
from recovery import outage

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.state import Endpoints

BATCHES = 6
# Nobody listens there.
NOBODY = "postgresql://nobody@127.0.0.1:9/none"


def millstream(folder: Path, url: str, *given: str, armed: str = "") -> int:
    """A command over the project with the sink at that address; its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "millstream", *given],
        cwd=folder,
        env={**os.environ, "SINK": url, VARIABLE: armed},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
    return done.returncode


@pytest.mark.timeout(900)
def test_killed_at_each_point_of_setting_aside_and_of_delivering(tmp_path: Path, stack: Endpoints) -> None:
    sink = outage.table(stack, "killed_aside")
    sink["postgres"]["url"] = "${SINK}"
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump(outage.spec(tmp_path, sink)))
    outage.put(tmp_path, BATCHES)
    caught_up = ("run", "--until-caught-up")

    # The sink is away: dies with the second batch set aside and not committed, then goes on to the end.
    assert millstream(tmp_path, NOBODY, *caught_up, armed="aside.kept=kill@2") == -signal.SIGKILL
    assert millstream(tmp_path, NOBODY, *caught_up) == 0
    # It is back: each replay dies a step further in its first batch.
    for point in ("postgres.staged", "postgres.open", "postgres.committed", "aside.delivered"):
        code = millstream(tmp_path, stack.postgres, "deadletter", "replay", armed=f"{point}=kill@1")
        assert code == -signal.SIGKILL, point
    # So does a run, in a batch that comes while others wait.
    outage.put(tmp_path, 2, first=BATCHES)
    assert millstream(tmp_path, stack.postgres, *caught_up, armed="aside.delivered=kill@2") == -signal.SIGKILL
    assert millstream(tmp_path, stack.postgres, *caught_up) == 0
    assert millstream(tmp_path, stack.postgres, "deadletter", "replay") == 0

    assert outage.in_table(stack, "killed_aside") == outage.wanted(BATCHES + 2)
