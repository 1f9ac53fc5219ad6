"""The wheel and the sdist, installed where there is no repository: what a person gets who installs them."""

from __future__ import annotations

import os
import re
import shlex
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
    install = [*uv, "pip", "install", "-q", "--python", str(python), str(wheel)]
    # From the cache of `make install` where it holds everything; an index may make uv build pyspark anew each time.
    if subprocess.run([*install, "--offline"], check=False, capture_output=True).returncode != 0:
        subprocess.run(install, check=True)
    return folder / "venv/bin/millstream"


def run(millstream: Path, folder: Path, *words: str) -> str:
    """Run a command outside the repository, answer its question with yes, and return what it prints to stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [millstream, *words],
        cwd=folder,
        env=environment,
        input="y\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_the_page_the_examples_the_templates_and_the_pages_of_codes(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    for wanted in (
        "millstream/dashboard/static/index.html",
        "millstream/examples/starter/pipeline.yml",
        "millstream/analysis/rules/ms201_missing_watermark.md",
        "millstream/deployment/templates/Dockerfile",
        "millstream/deployment/templates/kubernetes.yml",
        "millstream/deployment/templates/main.py",
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


def test_the_tutorial_is_true_word_by_word(millstream: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs/tutorial/first-pipeline.md").read_text(encoding="utf-8")
    folder, printed = tmp_path, []
    for block in re.finditer(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        language, text = block[1], block[2]
        if language == "console":
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ "))
                if words[0] == "cd":
                    folder /= words[1]
                else:
                    assert words[0] == "millstream"
                    printed.append((words[1], run(millstream, folder, *words[1:])))
        elif language == "diff":
            old, new = (line[1:].strip() for line in text.splitlines())
            spec = folder / "pipeline.yml"
            assert spec.read_text().count(old) == 1
            spec.write_text(spec.read_text().replace(old, new))
        elif language == "yaml" and text.startswith("tests:"):
            (folder / "tests/windows.yml").write_text(text)

    assert [command for command, _ in printed] == [
        *("init", "check", "run", "show"),
        *("reset", "check", "run", "show"),
        "test",
    ]
    outputs = [output for _, output in printed]
    assert "no findings" in outputs[1]
    # The heading and the columns that the page shows.
    assert re.search(r"^averages, batch \d+: \d+ rows$", outputs[2], re.MULTILINE)
    assert re.search(r"^since +│ sensor +│ celsius │ readings", outputs[2], re.MULTILINE)
    counts = [int(row.split()[-1]) for row in outputs[3].splitlines()[1:]]
    assert max(counts) == 40
    assert "deleted .millstream/checkpoints/averages" in outputs[4]
    assert "deleted lake/averages" in outputs[4]
    starts = {row.split()[1][-2:] for row in outputs[7].splitlines()[1:]}
    assert starts
    assert starts <= {"00", "30"}


def test_help_needs_no_repository(millstream: Path, tmp_path: Path) -> None:
    assert "starter" in run(millstream, tmp_path, "init", "--list")
    assert "# Aggregation or deduplication without a watermark (MS201)" in run(
        millstream, tmp_path, "explain", "MS201"
    )
    assert "# watermark" in run(millstream, tmp_path, "explain", "watermark")
