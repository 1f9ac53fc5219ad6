"""Install millstream into the environment of this Python: `use` it, or develop it (`dev`).

By uv, which unpacks in parallel; by pip where uv cannot be had. Both take PIP_INDEX_URL as the mirror.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGETS = {"use": ["-e", ".[local]"], "dev": ["-e", ".[local]", "--group", "dev"]}


def pip(*words: str) -> bool:
    """Did pip do it?"""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def uv(*words: str) -> bool:
    """Did uv do it?"""
    mirrors = {
        f"UV_{key}": os.environ[f"PIP_{key}"]
        for key in ("INDEX_URL", "EXTRA_INDEX_URL")
        if f"PIP_{key}" in os.environ
    }
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, *words]
    return subprocess.run(command, cwd=ROOT, check=False, env={**mirrors, **os.environ}).returncode == 0


def main(target: str) -> int:
    """Install; 0 when it is done, 4 when neither way works."""
    wanted = TARGETS[target]
    sys.stderr.write("installing; most of the time goes into pyspark, 450 MB\n")
    if pip("uv") and uv(*wanted):
        return 0
    # A group of dependencies needs a pip of 25.1 or later.
    if pip("pip>=25.1") and pip(*wanted):
        return 0
    sys.stderr.write("the packages could not be installed; PIP_INDEX_URL names a mirror\n")
    return 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
