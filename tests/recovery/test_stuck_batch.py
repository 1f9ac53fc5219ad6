"""A batch that waits in Python for something that never comes: a second Ctrl-C ends the run all the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

PATIENCE = 100.0
SPEC = """
name: stuck
spark: {spark.master: "local[1]", spark.driver.memory: 1g}
sources:
  ticks: {rate: {rows_per_second: 5}}
queries:
  ticks: {trigger: 1 second, to: {foreach_batch: "stuck:write"}}
"""
WRITE = """
    import pathlib
    import threading

    def write(frame, batch_id):
        pathlib.Path("waiting").touch()
        threading.Event().wait()
"""


def test_the_second_ctrl_c_ends_a_run_whose_batch_ignores_its_interruption(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    (tmp_path / "stuck.py").write_text(textwrap.dedent(WRITE))
    command = [str(Path(sys.executable).with_name("millstream")), "run", "--json"]
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True
        )
    try:
        assert process.stdout is not None
        assert any('"query_started"' in line for line in process.stdout), (tmp_path / "err").read_text()
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "waiting").exists():
            assert time.monotonic() < until, "the batch does not begin"
            threading.Event().wait(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert any('"stopping"' in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)

        last = [json.loads(line) for line in process.stdout][-2:]
        assert process.wait(PATIENCE) == 130, (tmp_path / "err").read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    text = (tmp_path / "err").read_text()
    assert "Traceback" not in text, text
    assert [event["event"] for event in last] == ["query_stopped", "run_stopped"]
    assert "runs again at the next start" in last[0]["reason"]
    assert last[1]["exit_code"] == 130
