"""Take the terminal of a run at 80, 100 and 120 columns, as a person sees it: starting, and with batches.

    python tools/run_screens.py FOLDER

Runs the starter example in a terminal in memory, whose width changes while it runs. Writes
`starting-WIDTH.txt` and `running-WIDTH.txt` to FOLDER, and the same as SVG.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyte
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from millstream.cli.init import copy_example
from terminal_pictures import TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTHS = (120, 100, 80)
HEIGHT = 40
# Spark's start on a busy machine, in seconds.
PATIENCE = 240


class RunTerminal:
    """A run in a terminal in memory."""

    def __init__(self, folder: Path) -> None:
        self.screen = pyte.Screen(WIDTHS[0], HEIGHT)
        self.stream = pyte.ByteStream(self.screen)
        self.side, theirs = pty.openpty()
        self.resize(WIDTHS[0])
        environment = {**os.environ, "TERM": "xterm-256color"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "millstream", "run", "-f", str(folder), "--port", "0"]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
        os.close(theirs)

    def resize(self, width: int) -> None:
        """Give the terminal another width, and tell the run."""
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, width, 0, 0))
        self.screen.resize(HEIGHT, width)
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGWINCH)

    def read_until(self, is_reached: Callable[[str], bool]) -> None:
        """Read the output until the screen shows something."""
        end = time.monotonic() + PATIENCE
        while not is_reached(self.text()):
            if time.monotonic() > end:
                raise SystemExit(f"the run never showed it:\n{self.text()}")
            self.read(0.2)

    def read(self, seconds: float) -> None:
        """Read what comes within this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.side], [], [], left)[0]:
                try:
                    self.stream.feed(os.read(self.side, 65536))
                except OSError:  # Linux's end of a terminal whose process is gone
                    return

    def text(self) -> str:
        """Return what is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def end(self) -> None:
        """End the run as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.read(10)
        self.process.wait(60)
        os.close(self.side)


def save(terminal: RunTerminal, path: Path) -> None:
    """Write the screen as text and as SVG."""
    path.with_suffix(".txt").write_text(f"{terminal.text()}\n", encoding="utf-8")
    console = Console(record=True, width=terminal.screen.columns, file=io.StringIO(), force_terminal=True)
    console.print(Text(terminal.text()))
    svg = console.export_svg(title="millstream run", theme=MONOKAI, code_format=TEMPLATE, unique_id=path.stem)
    path.with_suffix(".svg").write_text(svg, encoding="utf-8")


def main() -> int:
    """Take all screens."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "hello"
        copy_example("starter", folder)
        terminal = RunTerminal(folder)
        try:
            terminal.read_until(lambda text: "Spark" in text)
            for scene in ("starting", "running"):
                if scene == "running":
                    terminal.read_until(lambda text: "batch 2" in text or "batch 3" in text)
                for width in WIDTHS:
                    terminal.resize(width)
                    # The table is drawn again some times a second.
                    terminal.read(3 if scene == "starting" else 7)
                    save(terminal, out / f"{scene}-{width}")
        finally:
            terminal.end()
        save(terminal, out / "ended-80")
    return 0


if __name__ == "__main__":
    sys.exit(main())
