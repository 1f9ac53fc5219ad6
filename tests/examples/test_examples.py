"""Every example: its spec is clean, it can be read by a person and by a program, and it says what it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import commands

if TYPE_CHECKING:
    from commands import Done

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.yml"))
IN_PYTHON = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.py"))


def call(example: str, *words: str) -> Done:
    """`millstream …` in an example's folder, with none of the variables that its spec may read."""
    kept = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    env = {key: value for key, value in os.environ.items() if key in kept}
    return commands.call(EXAMPLES / example, *words, env=env)


@pytest.mark.parametrize("name", NAMES)
def test_its_spec_is_clean(name: str) -> None:
    done = call(name, "check", "--fast", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["findings"] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_sink_of_it_has_a_guarantee_with_reasons(name: str) -> None:
    told = json.loads(call(name, "check", "--fast", "--format", "json").stdout)["guarantees"]
    assert told
    assert all(one["guarantee"] and one["reasons"] for one in told)


@pytest.mark.parametrize("name", NAMES)
def test_its_config_is_told_with_every_default(name: str) -> None:
    done = call(name, "config")
    assert done.returncode == 0, done.stderr
    assert "queries:" in done.stdout
    assert "checkpoints:" in done.stdout


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "json"])
def test_its_graph_can_be_drawn(name: str, form: str) -> None:
    done = call(name, "graph", "--format", form)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("name", NAMES)
def test_its_readme_names_the_commands_to_try(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert "millstream run" in text
    assert "millstream show" in text


@pytest.mark.parametrize("name", NAMES)
def test_what_a_run_of_it_leaves_behind_is_offered_to_no_commit(name: str) -> None:
    for made in ("lake/funnel/part.parquet", ".millstream/checkpoints/offsets"):
        ignored = subprocess.run(
            ["git", "check-ignore", "--quiet", made], cwd=EXAMPLES / name, timeout=20, check=False
        )
        assert ignored.returncode == 0, f"{made} would be committed"


@pytest.mark.parametrize("name", IN_PYTHON)
def test_the_same_pipeline_in_python_is_clean_and_keeps_the_same_sources_sinks_and_guarantees(
    name: str,
) -> None:
    told = {}
    for file in ("pipeline.yml", "pipeline.py"):
        graph = json.loads(call(name, "graph", "--format", "json", "-f", file).stdout)
        checked = json.loads(call(name, "check", "--fast", "--format", "json", "-f", file).stdout)
        # What is two views in SQL may be one function.
        ends = [node for node in graph["nodes"] if node["kind"] != "view"]
        kept = [(one["query"], one["sink"], one["guarantee"]) for one in checked["guarantees"]]
        told[file] = (ends, kept, checked["findings"])

    assert told["pipeline.py"] == told["pipeline.yml"]
    assert told["pipeline.py"][2] == []
