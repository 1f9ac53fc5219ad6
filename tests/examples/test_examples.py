"""Every example: its spec is clean, it can be read by a person and by a program, and it says what it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import commands
from millstream.diagnostics.guarantee_table import format_guarantee_table

if TYPE_CHECKING:
    from commands import Done

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.yml"))
IN_PYTHON = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.py"))


def call(example: str, *words: str) -> Done:
    """`millstream …` in an example's folder, with none of the variables that its spec may read."""
    remaining = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    env = {key: value for key, value in os.environ.items() if key in remaining}
    return commands.call(EXAMPLES / example, *words, env=env)


@pytest.mark.parametrize("name", NAMES)
def test_its_spec_is_clean(name: str) -> None:
    result = call(name, "check", "--fast", "--format", "json")
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout)["findings"] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_sink_of_it_has_a_guarantee_with_reasons(name: str) -> None:
    guarantees = json.loads(call(name, "check", "--fast", "--format", "json").stdout)["guarantees"]
    assert guarantees
    assert all(item["guarantee"] and item["reasons"] for item in guarantees)


@pytest.mark.parametrize("name", NAMES)
def test_its_readme_shows_the_guarantees_as_the_check_prints_them(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```text\n(query +sink +guarantee +.*?)^```", text, re.MULTILINE | re.DOTALL)
    if not blocks:
        return
    guarantees = json.loads(call(name, "check", "--fast", "--format", "json").stdout)["guarantees"]

    assert [block.splitlines() for block in blocks] == [format_guarantee_table(guarantees)]


@pytest.mark.parametrize("name", NAMES)
def test_its_config_is_told_with_every_default(name: str) -> None:
    result = call(name, "config")
    assert result.returncode == 0, result.stderr
    assert "queries:" in result.stdout
    assert "checkpoints:" in result.stdout


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "json"])
def test_its_graph_can_be_drawn(name: str, form: str) -> None:
    result = call(name, "graph", "--format", form)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


@pytest.mark.parametrize("name", NAMES)
def test_its_readme_names_the_commands_to_try(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert "millstream run" in text
    assert "millstream show" in text


@pytest.mark.parametrize("name", NAMES)
def test_what_a_run_of_it_leaves_behind_is_offered_to_no_commit(name: str) -> None:
    for result in ("lake/funnel/part.parquet", ".millstream/checkpoints/offsets"):
        ignored = subprocess.run(
            ["git", "check-ignore", "--quiet", result], cwd=EXAMPLES / name, timeout=100, check=False
        )
        assert ignored.returncode == 0, f"{result} would be committed"


@pytest.mark.parametrize("name", IN_PYTHON)
def test_the_same_pipeline_in_python_is_clean_and_keeps_the_same_sources_sinks_and_guarantees(
    name: str,
) -> None:
    messages = {}
    for file in ("pipeline.yml", "pipeline.py"):
        graph = json.loads(call(name, "graph", "--format", "json", "-f", file).stdout)
        checked = json.loads(call(name, "check", "--fast", "--format", "json", "-f", file).stdout)
        # What is two views in SQL may be one function.
        ends = [node for node in graph["nodes"] if node["kind"] != "view"]
        remaining = [
            (guarantee["query"], guarantee["sink"], guarantee["guarantee"])
            for guarantee in checked["guarantees"]
        ]
        messages[file] = (ends, remaining, checked["findings"])

    assert messages["pipeline.py"] == messages["pipeline.yml"]
    assert messages["pipeline.py"][2] == []
