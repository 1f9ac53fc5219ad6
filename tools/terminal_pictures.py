"""Draw the terminal pictures of the README from real commands: docs/images/*.svg.

`python tools/terminal_pictures.py` runs each command in a terminal of a fixed width, in a project that it writes.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "images"
WIDTH = 92
# The pipeline of the README, without its watermark.
WITHOUT_WATERMARK = """name: shop
defaults: {trigger: 10 seconds}
sources:
  clicks:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks, max_offsets_per_trigger: 100000}
    schema: {event_id: string, page: string, event_time: timestamp}
views:
  per_minute: |
    SELECT window.start AS minute, page, count(*) AS clicks
    FROM clicks
    GROUP BY window(event_time, '1 minute'), page
queries:
  per_minute:
    output_mode: update
    to: [{delta: {path: lake/per_minute, merge_on: [minute, page]}}]
"""
# Rich's template loads a font from elsewhere; a picture must need no network.
TEMPLATE = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def run_in_terminal(words: list[str], folder: Path) -> str:
    """Run a command in a terminal of this width, and return what it writes, with its colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "millstream", *words]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            break
        if not part:
            break
        parts.append(part)
    process.wait()
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def draw(command: str, output: str, path: Path) -> None:
    """Draw a terminal with one command and its output as SVG."""
    # What a progress line overwrites is not on the screen in the end.
    shown = "\n".join(re.split(r"\r\x1b\[2?K", line)[-1] for line in output.rstrip("\n").split("\n"))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(shown))
    path.write_text(
        console.export_svg(title="millstream", theme=MONOKAI, code_format=TEMPLATE, unique_id=path.stem),
        encoding="utf-8",
    )


def main() -> None:
    """Draw every picture."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pipeline.yml").write_text(WITHOUT_WATERMARK, encoding="utf-8")
        output = run_in_terminal(["check", "--fast"], Path(folder))
    draw("millstream check --fast", output, OUT / "check-error.svg")


if __name__ == "__main__":
    main()
