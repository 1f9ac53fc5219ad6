"""`check --watch` as a process of its own: a save is answered, and Ctrl-C is a graceful end."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders}
    schema: {user: string, amount: double, ts: timestamp}
    watermark: {event_time: ts, delay_threshold: 1 minute}
views:
  big: {python: "transforms:big"}
queries:
  big: {to: {console: {}}}
"""
FUNCTION = "from limits import COLUMN\n\n\ndef big(orders):\n    return orders.select(COLUMN)\n"
READY = "waiting for changes"


def until_ready(process: subprocess.Popen[str]) -> str:
    """All that is printed up to the end of a check."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if READY in line:
            return text
    raise AssertionError(f"it ended: {text}")


def _listening() -> None:
    # A shell that runs the tests in the background has its children ignore interrupts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_save_is_checked_again_and_an_interrupt_ends_it(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    (tmp_path / "transforms.py").write_text(FUNCTION)
    (tmp_path / "limits.py").write_text("COLUMN = 'user'\n")
    command = [sys.executable, "-m", "millstream", "check", "--watch", "--format", "concise"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_listening,
    ) as process:
        first = until_ready(process)

        # A module that the function imports: neither it nor the function's own file is named by the spec.
        (tmp_path / "limits.py").write_text("COLUMN = 'usr'\n")
        second = until_ready(process)
        (tmp_path / "pipeline.yml").write_text(SPEC.replace("queries:", "queries"))
        third = until_ready(process)
        (tmp_path / "pipeline.yml").unlink()
        fourth = until_ready(process)

        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0

    assert "MS" not in first
    assert "transforms.py:5" in second
    assert "MS001" in third
    assert "there is no file" in fourth
