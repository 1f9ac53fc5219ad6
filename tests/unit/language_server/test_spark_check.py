"""Why a check in the child process gave no report."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from millstream.language_server import spark_check
from millstream.language_server.spark_check import SparkCheck

if TYPE_CHECKING:
    from pathlib import Path


class PromptTimer(threading.Timer):
    """A timer whose thread has ended when it is cancelled."""

    def cancel(self) -> None:
        super().cancel()
        self.join()


@pytest.mark.parametrize(
    ("code", "patience", "error"),
    [
        ("input()", 60.0, "the check with Spark ended"),
        ("import time; time.sleep(60)", 0.1, "the check with Spark took too long"),
    ],
)
def test_a_check_that_ends_differs_from_one_that_takes_too_long(
    code: str, patience: float, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = SparkCheck(tmp_path)
    monkeypatch.setattr(spark_check, "PATIENCE", patience)
    monkeypatch.setattr(threading, "Timer", PromptTimer)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        monkeypatch.setattr(check, "_start", lambda: child)

        assert check.check(tmp_path / "pipeline.yml")["error"] == error
