"""The commands `config` and `schema`, and how a project is opened."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import run_command
from millstream.cli.variables import read_env, spec_environment
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources:
  ticks: {rate: {rows_per_second: 3}}
queries:
  ticks:
    to: {postgres: {url: "${DB}", table: t}}
"""
CANARY = "S3CR3T-canary"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DB", raising=False)
    return tmp_path


def test_config_prints_the_spec_with_defaults_and_no_secret(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB", f"postgresql://me:{CANARY}@host/db")

    assert run_command(["config", "--json"]) == 0

    out = capsys.readouterr().out
    assert CANARY not in out
    data = json.loads(out)
    assert data["queries"]["ticks"]["checkpoint"] == str(project / ".millstream/checkpoints/ticks")
    assert data["queries"]["ticks"]["to"][0]["postgres"]["url"] == "postgresql://me:***@host/db"


def test_errors_go_to_stderr_and_end_with_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.exists()
    assert run_command(["config"]) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert "error[MS006]: the variable DB is not set" in err
    assert "--> pipeline.yml:6:27" in err
    assert "Traceback" not in err


def test_a_file_that_is_not_yaml_ends_with_two(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pipeline.yml").write_text("a: [")

    assert run_command(["config"]) == 2
    assert "error[MS001]" in capsys.readouterr().err


def test_variables_come_from_the_process_then_the_given_file_then_the_one_beside(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".env").write_text("A=beside\nB=beside\nC=beside\n")
    (project / "other").write_text("B=given\nC=given\n")
    monkeypatch.setenv("C", "process")

    actual = spec_environment(project, project / "other")

    assert (actual["A"], actual["B"], actual["C"]) == ("beside", "given", "process")


def test_a_file_of_variables_has_quotes_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("# all\n\nexport A = 1 # one\nB='x # y'\nC=\"a b\" # c\nD=a#b\nE=\n")

    assert read_env(path) == {"A": "1", "B": "x # y", "C": "a b", "D": "a#b", "E": ""}


def test_a_line_that_sets_no_variable_is_told(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("A=1\nwhat\n")

    with pytest.raises(InvalidInput, match="line 2"):
        read_env(path)


def test_schema_is_written_beside_the_spec(project: Path) -> None:
    assert run_command(["schema", "--write"]) == 0

    path = project / ".millstream" / "schema.json"
    assert "kafka" in json.loads(path.read_text())["$defs"]["SourceEntry"]["properties"]
    assert stat.S_ISREG(path.stat().st_mode)


@pytest.mark.parametrize("args", [["--help"], ["schema"], ["config"]])
def test_a_command_about_the_spec_loads_nothing_heavy(project: Path, args: list[str]) -> None:
    code = (
        "import sys; from millstream.cli.main import run_command; done = run_command(sys.argv[1:])\n"
        "heavy = {'pyspark', 'pandas', 'pyarrow', 'confluent_kafka', 'psycopg', 'deltalake', 'sqlglot'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'loaded {sorted(heavy)}' if heavy else done)"
    )
    env = {**os.environ, "DB": "postgresql://h/db"}

    result = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=project, env=env, capture_output=True, text=True
    )

    assert result.returncode == 0, result.stderr


SHORT = """name: shop
sources:
  ticks: {rate: 3}
  clicks: {kafka: {bootstrap_servers: "localhost:1", subscribe: clicks}, schema: {id: string}}
views:
  ids: SELECT id FROM clicks
queries:
  ids:
    trigger: 5 seconds
    to: {parquet: {path: lake/ids, partition_by: [id]}}
  ticks: {to: {delta: lake/ticks}}
"""


def marked(text: str) -> dict[str, list[bool]]:
    """Whether each line of `config` is marked as a default, by its key or item."""
    marks: dict[str, list[bool]] = {}
    for line in text.splitlines():
        key = line.strip().removeprefix("- ").partition(":")[0].partition(" ")[0]
        marks.setdefault(key, []).append(line.endswith("  # default"))
    return marks


def test_config_marks_what_the_spec_does_not_set(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pipeline.yml").write_text(SHORT)

    assert run_command(["config", "--set", "sources.clicks.kafka.max_offsets_per_trigger=7"]) == 0

    marks = marked(capsys.readouterr().out)
    for key in (
        "name",
        "rows_per_second",
        "subscribe",
        "path",
        "bootstrap_servers",
        "max_offsets_per_trigger",
        "id",
    ):
        assert not any(marks[key]), key
    for key in ("ramp_up_time", "starting_offsets", "static", "compression", "merge_schema", "restarts"):
        assert all(marks.get(key, [True])), key
    assert marks["processing_time"].count(True) <= 1
    assert marks["starting_offsets"]


def test_the_comments_of_config_change_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pipeline.yml").write_text(SHORT)
    assert run_command(["config"]) == 0
    first = capsys.readouterr().out

    (project / "pipeline.yml").write_text(first)
    assert run_command(["config"]) == 0

    assert [
        line.removesuffix("  # default") for line in first.splitlines()
    ] == capsys.readouterr().out.splitlines()
