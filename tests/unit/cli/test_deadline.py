"""A command that must end within a fixed time after the first signal, whatever it is doing."""

from __future__ import annotations

import signal
import subprocess
import sys

# It ignores every signal, as a batch does that the JVM computes, and would never end by itself.
STUBBORN = """
import signal, threading
from millstream.cli.signals import Deadline
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: None)
with Deadline(0.1, 0.1, lambda: print("first:", deadline.first_signal, flush=True)) as deadline:
    print("begun", flush=True)
    threading.Event().wait()
"""


def test_what_must_be_done_before_the_exit_is_done_and_knows_the_first_signal() -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "begun\n"

        command.send_signal(signal.SIGINT)

        assert command.stdout.read() == f"first: {int(signal.SIGINT)}\n"
    assert command.returncode == 130
