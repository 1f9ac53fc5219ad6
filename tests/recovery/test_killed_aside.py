"""A run that sets batches aside is killed, and each replay of them too: each row comes once, in order per key."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

import sweep
from millstream.connectors.failpoints import VARIABLE
from recovery import outage, same_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

BATCHES = 6
# The later ones are met with a kill in test_killed_letters.py and at the end of this test too.
POINTS = ("postgres.staged", "postgres.open", "postgres.committed", "aside.delivered")
# Nobody listens there.
NOBODY = "postgresql://nobody@127.0.0.1:9/none"


def millstream(folder: Path, url: str, *given: str, armed: str = "") -> int:
    """A command over the project with the sink at that address; its exit code."""
    result = subprocess.run(
        [sys.executable, "-m", "millstream", *given],
        cwd=folder,
        env={**os.environ, "SINK": url, VARIABLE: armed},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return result.returncode


@pytest.mark.timeout(900)
def test_killed_at_each_point_of_setting_aside_and_of_delivering(
    spark: SparkSession, tmp_path: Path, stack: Endpoints
) -> None:
    sink = outage.table(stack, "killed_aside")
    sink["postgres"]["url"] = "${SINK}"
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump(outage.spec(tmp_path, sink)))
    outage.write_input(tmp_path, BATCHES)
    caught_up = ("run", "--until-caught-up")

    # The sink is away: dies with the second batch set aside and not committed, then goes on to the end.
    assert millstream(tmp_path, NOBODY, *caught_up, armed="aside.kept=kill@2") == -signal.SIGKILL
    same_process.catch_up(spark, tmp_path, SINK=NOBODY)
    # It is back: each replay dies a step further in its first batch.
    for point in POINTS if sweep.WHOLE else POINTS[:1]:
        code = millstream(tmp_path, stack.postgres, "deadletter", "replay", armed=f"{point}=kill@1")
        assert code == -signal.SIGKILL, point
    # So does a run, in a batch that comes while others wait.
    outage.write_input(tmp_path, 2, first=BATCHES)
    assert millstream(tmp_path, stack.postgres, *caught_up, armed="aside.delivered=kill@2") == -signal.SIGKILL
    same_process.catch_up(spark, tmp_path, SINK=stack.postgres)
    same_process.replay_all(spark, tmp_path, SINK=stack.postgres)

    assert outage.in_table(stack, "killed_aside") == outage.expected_rows(BATCHES + 2)
