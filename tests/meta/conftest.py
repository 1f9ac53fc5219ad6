"""Where the repository is, and which of its files are tracked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """Every tracked file that is still there; without git, every file of the source folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        folders = ("src", "tests", "docs", "tools", "examples", "benchmarks")
        files = [
            file for name in folders for file in (ROOT / name).rglob("*") if "__pycache__" not in file.parts
        ]
        files += ROOT.glob("*.*")
    return [file for file in files if file.is_file() and not file.is_symlink()]


@pytest.fixture(scope="session")
def prose(tracked: list[Path]) -> list[Path]:
    """Every Markdown page."""
    return [file for file in tracked if file.suffix == ".md"]
