"""What pytest collects, without playing it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.testing import pytest_plugin

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TEST = """\
pipeline: {name: a, sources: {ticks: {rate: {}}}, queries: {ticks: {to: {console: {}}}}}
tests:
  a tick comes through:
    steps:
      - feed: {ticks: [{value: 1}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "ticks.yml").write_text(TEST)
    (tmp_path / "tests" / "data.yml").write_text("rows: []\n")
    return tmp_path


# Two thirds of a pytest's start is the import of plugins that have nothing to do with ours.
OTHERS = ("cacheprovider", "hypothesispytest", "inline_snapshot", "xdist", "timeout")


def collected(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    other_items = [word for name in OTHERS for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *other_items, *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_the_tests_of_a_file_are_items(project: Path) -> None:
    result = collected(project)

    assert result.stdout.splitlines()[0] == "tests/ticks.yml::a tick comes through"
    assert "1 test collected" in result.stdout


def test_a_fault_in_a_file_is_an_error_with_its_place(project: Path) -> None:
    (project / "tests" / "ticks.yml").write_text(TEST.replace("feed:", "fed:"))

    result = collected(project)

    assert result.returncode == 2
    assert "error[MS002]: a step has no key 'fed'" in result.stdout
    assert "ticks.yml:5:9" in result.stdout


@pytest.mark.parametrize("words", [("-p", "no:millstream"), ("-o", "millstream_tests=false")])
def test_it_can_be_turned_off(words: tuple[str, ...], project: Path) -> None:
    assert "no tests collected" in collected(project, *words).stdout


def test_to_be_loaded_it_needs_pytest_alone() -> None:
    heavy = "('pydantic', 'yaml', 'pyspark')"
    code = (
        "import sys, pytest, millstream.testing.pytest_plugin; "
        f"print([one for one in {heavy} if one in sys.modules])"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout == "[]\n"


def test_a_parameter_has_any_character(tmp_path: Path) -> None:
    spec = "name: a\nparams: {sign: x}\nsources: {ticks: {rate: {}}}\nqueries: {ticks: {to: {console: {}}}}\n"
    (tmp_path / "pipeline.yml").write_text(spec)

    pipeline = pytest_plugin._load_pipeline(tmp_path, "pipeline.yml", {"sign": "é 😀\x85\x9f\u2028"}, {})

    assert pipeline.params == {"sign": "é 😀\x85\x9f\u2028"}
