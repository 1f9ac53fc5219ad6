"""`millstream test` as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from commands import call, shared_spark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from commands import Done

    Run = Callable[..., Done]

SPEC = "name: a\nsources: {ticks: {rate: {}}}\nqueries: {ticks: {to: {console: {}}}}\n"
TEST = """\
tests:
  a tick comes through:
    steps:
      - feed: {ticks: [{value: 1}]}
        expect: [{value: 1}]  # one
  another does too:
    steps:
      - feed: {ticks: [{value: 2}]}
        expect: [{value: 3}]  # two
"""
RUN = "import sys; from millstream.cli.main import main; main(sys.argv[1:])"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "ticks.yml").write_text(TEST)
    return tmp_path


@pytest.fixture
def run(spark: SparkSession) -> Run:
    def run(project: Path, *words: str) -> Done:
        with shared_spark(spark):
            return call(project, "test", *words, env={**os.environ, "NO_COLOR": "1"})

    return run


def test_a_failed_test_is_told_and_ends_with_one(project: Path, run: Run) -> None:
    result = run(project, "--junit", "out.xml")

    assert result.returncode == 1
    assert "  ok      a tick comes through" in result.stdout
    assert "  FAILED  another does too" in result.stdout
    assert "*3       *2" in result.stdout
    assert "1 passed, 1 failed in" in result.stdout
    assert "next: millstream test tests/ticks.yml -k 'another does too'" in result.stderr
    root = ElementTree.parse(project / "out.xml").getroot()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("2", "1")


def test_json_is_all_that_stands_on_stdout(project: Path) -> None:
    """In a process of its own, with a JVM of its own, as either could write there too."""
    command = [sys.executable, "-c", RUN, "test", "--json", "-k", "TICK comes"]
    env = {**os.environ, "NO_COLOR": "1"}
    result = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)

    (test,) = json.loads(result.stdout)["tests"]
    assert result.returncode == 0
    assert {key: test[key] for key in ("name", "file", "line", "outcome", "message")} == {
        "name": "a tick comes through",
        "file": "tests/ticks.yml",
        "line": 2,
        "outcome": "passed",
        "message": None,
    }


def test_an_update_writes_what_came_and_nothing_else(project: Path, run: Run) -> None:
    result = run(project, "--update")

    assert result.returncode == 0
    assert "tests/ticks.yml: 1 step updated" in result.stdout
    assert (project / "tests" / "ticks.yml").read_text() == TEST.replace("{value: 3}", "{value: 2}")
    assert (project / "pipeline.yml").read_text() == SPEC


def test_a_recorded_test_passes_once_it_is_filled(tmp_path: Path, run: Run) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.json").write_text(
        '{"id": "a", "at": "2026-01-01T12:00:00Z"}\n{"id": "b", "at": null}\n'
    )
    (tmp_path / "pipeline.yml").write_text(
        "name: a\nsources: {clicks: {json: data, schema: {id: string, at: timestamp}}}\n"
        "queries: {clicks: {to: {console: {}}}}\n"
    )

    recorded = run(tmp_path, "--record", "clicks", "--rows", "5")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "real.yml").write_text(recorded.stdout)
    filled = run(tmp_path, "--update")

    assert '- {id: a, at: "2026-01-01 12:00:00"}' in recorded.stdout
    assert (recorded.returncode, filled.returncode) == (0, 0)
    assert (tmp_path / "tests" / "real.yml").read_text().count("{id: b, at: null}") == 2
    assert run(tmp_path).returncode == 0


def test_the_first_failure_may_end_it(project: Path, run: Run) -> None:
    (project / "tests" / "ticks.yml").write_text(TEST.replace("{value: 1}]  # one", "{value: 9}]  # one"))

    result = run(project, "-x", "--json")

    assert [test["outcome"] for test in json.loads(result.stdout)["tests"]] == ["failed"]
