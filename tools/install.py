"""Install millstream into the environment of this Python: `use` it, or develop it (`dev`).

By uv, which unpacks in parallel; by pip where uv cannot be had. Both take PIP_INDEX_URL as the mirror.
`page` installs what the tests of the live page need beside that: a Chromium and page/node_modules.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGETS = {"use": ["-e", ".[local]"], "dev": ["-e", ".[local,otel,duckdb,lsp]", "--group", "dev"]}


def pip(*words: str) -> bool:
    """Did pip do it?"""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def uv(*words: str) -> bool:
    """Did uv do it?

    First from its cache alone: where the index lets nothing be kept, uv would fetch and build pyspark anew for each
    installation, 25 s and 2.3 GB of cache.
    """
    mirrors = {
        f"UV_{key}": os.environ[f"PIP_{key}"]
        for key in ("INDEX_URL", "EXTRA_INDEX_URL")
        if f"PIP_{key}" in os.environ
    }
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, *words]
    environment = {**mirrors, **os.environ}
    cached = subprocess.run(
        [*command, "--offline"], cwd=ROOT, check=False, env=environment, capture_output=True
    )
    return (
        cached.returncode == 0
        or subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode == 0
    )


def succeeds(*command: str, where: Path = ROOT) -> bool:
    """Did a command do it? What it says goes to stderr."""
    messages = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, cwd=where, check=False, stdout=sys.stderr, env=messages).returncode == 0


def page() -> int:
    """Install a Chromium by apt, as root, and axe-core by npm; 0 also where that cannot be: the tests then say so."""
    browsers = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if os.environ.get("MILLSTREAM_CHROMIUM") or any(shutil.which(name) for name in browsers):
        pass
    elif shutil.which("apt-get") is None or os.geteuid() != 0:
        sys.stderr.write("no Chromium, and no right to install one; tests/page are skipped\n")
    elif not (
        succeeds("apt-get", "-qq", "update")
        and succeeds("apt-get", "-qq", "install", "--no-install-recommends", "chromium")
    ):
        sys.stderr.write("chromium could not be installed by apt; tests/page are skipped, and fail in CI\n")
    npm = shutil.which("npm")
    if npm and not (ROOT / "page/node_modules/axe-core").is_dir():
        succeeds(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", where=ROOT / "page")
    return 0


def main(target: str) -> int:
    """Install; 0 when it is done, 4 when neither way works."""
    if target == "page":
        return page()
    expected = TARGETS[target]
    sys.stderr.write("installing; most of the time goes into pyspark, 450 MB\n")
    if pip("uv") and uv(*expected):
        return 0
    # A group of dependencies needs a pip of 25.1 or later.
    if pip("pip>=25.1") and pip(*expected):
        return 0
    sys.stderr.write("the packages could not be installed; PIP_INDEX_URL names a mirror\n")
    return 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
