"""What whole sweeps do to a cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_whole_sweeps_kill_at_least_forty_drivers_workers_and_servers_of_a_cluster(root: Path) -> None:
    variables = {key: value for key, value in os.environ.items() if key != "MILLSTREAM_KILLS"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-p",
            "no:cacheprovider",
            "-m",
            "kills",
            "tests/cluster",
        ],
        cwd=root,
        env={**variables, "MILLSTREAM_SWEEP": "all"},
        capture_output=True,
        text=True,
        check=False,
    )

    counted = re.search(r"^kills on a cluster: (\d+)$", done.stdout, re.MULTILINE)
    assert counted, done.stdout + done.stderr
    assert int(counted[1]) >= 40
