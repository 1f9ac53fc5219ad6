"""The command on a script: arguments after the file, one JSON object, an exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[3] / "scripts"


def test_check_takes_a_script_with_its_arguments(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "millstream",
        "check",
        "--json",
        str(HOME / "socket_words.py"),
        "localhost",
        "9",
    ]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)

    data = json.loads(result.stdout)
    assert result.returncode == 1
    assert [(finding["code"], finding["line"]) for finding in data["findings"]] == [("MS201", 18)]
    assert list(tmp_path.iterdir()) == []
