"""The wheel and the sdist, installed where there is no repository: what a person gets who installs them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a sdist of this checkout."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--sdist", "--wheel", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def millstream(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, in an environment with the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    (wheel,) = built.glob("*.whl")
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(folder / "venv")], check=True)
    python = folder / "venv/bin/python"
    subprocess.run([*uv, "pip", "install", "-q", "--python", str(python), str(wheel)], check=True)
    return folder / "venv/bin/millstream"


def run(millstream: Path, folder: Path, *words: str) -> str:
    """Run a command outside the repository, and return what it prints to stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [millstream, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_the_page_the_examples_and_the_pages_of_codes(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    for wanted in (
        "millstream/dashboard/static/index.html",
        "millstream/examples/starter/pipeline.yml",
        "millstream/analysis/rules/ms201_missing_watermark.md",
        "millstream/diagnostics/pages/ms001.md",
        "millstream/analysis/explain/glossary.md",
        "millstream/py.typed",
    ):
        assert wanted in names
    assert [name for name in names if "__pycache__" in name or ".millstream/" in name] == []


def test_the_sdist_has_what_builds_the_wheel_and_nothing_that_was_built(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "tools/hatch_build.py", "docs/site.yml", "page/package.json"} <= names
    assert [name for name in names if name.startswith(("build/", ".venv/", "page/node_modules"))] == []


def test_the_tutorial_passes_from_the_wheel(millstream: Path, tmp_path: Path) -> None:
    run(millstream, tmp_path, "init", "hello")
    hello = tmp_path / "hello"

    assert "no findings" in run(millstream, hello, "check")
    run(millstream, hello, "run", "--for", "10s")
    assert "readings" in run(millstream, hello, "show", "averages")

    spec = hello / "pipeline.yml"
    spec.write_text(spec.read_text().replace("'10 seconds'), sensor", "'30 seconds'), sensor"))
    run(millstream, hello, "reset", "averages", "--sinks", "--yes")
    run(millstream, hello, "run", "--for", "10s")
    rows = run(millstream, hello, "show", "averages").splitlines()[1:]

    assert rows
    assert {row.split()[1][-2:] for row in rows} <= {"00", "30"}


def test_help_needs_no_repository(millstream: Path, tmp_path: Path) -> None:
    assert "starter" in run(millstream, tmp_path, "init", "--list")
    assert "# missing-watermark (MS201)" in run(millstream, tmp_path, "explain", "MS201")
    assert "# watermark" in run(millstream, tmp_path, "explain", "watermark")
