"""Check saved files with Spark, in a child process that stays: `millstream check --server`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# Seconds for one check. The first one starts Spark; a script that runs longer is stuck.
PATIENCE = 180.0


class SparkCheck:
    """The child process, started by the first check, and again if it ended. Used by one thread, except `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False

    def check(self, path: Path) -> dict[str, Any]:
        """Return the report of a file: the JSON of `check`, or `error` and `fix` if it could not be checked."""
        process = self._start()
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(PATIENCE, end)
        timer.start()
        try:
            if process.stdin is None or process.stdout is None:
                raise BrokenPipeError
            process.stdin.write(json.dumps({"path": str(path)}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            self._process = None
            return {
                "error": "the check with Spark took too long"
                if is_late.is_set()
                else "the check with Spark ended",
                "fix": f"run it in a terminal: millstream check {path.name}",
            }
        report: dict[str, Any] = json.loads(line)
        return report

    def close(self) -> None:
        """End the child process. A check that is running returns an error."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "millstream", "check", "--server"],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            if self._is_closed:
                self._process.kill()
        return self._process
