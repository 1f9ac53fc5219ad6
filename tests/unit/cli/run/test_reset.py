"""`millstream reset`: what is deleted, what stays, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream.checkpoint.lock import CheckpointLock
from millstream.cli.main import run_command

SPEC = """name: shop
sources:
  orders: {json: in, schema: {id: string, ts: timestamp}}
views:
  latest: SELECT id, max(ts) AS ts FROM orders GROUP BY id
queries:
  latest:
    output_mode: update
    to: [{delta: {path: lake/latest, merge_on: [id]}}, {console: {}}]
  copy: {from: orders, to: [{delta: lake/copy}]}
"""
CHECKPOINTS = Path(".millstream/checkpoints")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two queries that have run."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("pipeline.yml").write_text(SPEC)
    for name in ("latest", "copy"):
        for part in ("offsets", "commits"):
            (CHECKPOINTS / name / part).mkdir(parents=True)
            (CHECKPOINTS / name / part / "7").write_text("v1\n{}")
        (CHECKPOINTS / name / "metadata").write_text(json.dumps({"id": "3f0c"}))
        Path("lake", name).mkdir(parents=True)
        Path("lake", name, "part.parquet").write_text("rows")
    return tmp_path


@pytest.mark.usefixtures("project")
def test_a_reset_deletes_the_checkpoint_of_this_query_alone_and_no_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["reset", "latest", "--yes"]) == 0

    assert not (CHECKPOINTS / "latest").exists()
    assert (CHECKPOINTS / "copy" / "offsets" / "7").exists()
    assert Path("lake/latest/part.parquet").exists()
    said = capsys.readouterr()
    assert said.out == "deleted .millstream/checkpoints/latest\n"
    assert "batch 7 is the last one committed" in said.err


@pytest.mark.usefixtures("project")
def test_each_sink_is_told_apart_by_what_a_second_reading_does_to_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_command(["reset", "--all", "--yes"])

    lines = {line.split(":")[0].strip(): line for line in capsys.readouterr().err.splitlines()}
    assert "replaces the one with its key" in lines["sink delta lake/latest"]
    assert "gets every row that is read again once more" in lines["sink console"]
    assert "the next run is refused" in lines["sink delta lake/copy"]
    assert "rm -r lake/copy" in lines["sink delta lake/copy"]


@pytest.mark.usefixtures("project")
def test_with_sinks_the_local_folders_go_too() -> None:
    assert run_command(["reset", "latest", "--sinks", "--yes"]) == 0

    assert not Path("lake/latest").exists()
    assert Path("lake/copy/part.parquet").exists()


@pytest.mark.usefixtures("project")
def test_without_a_yes_nothing_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.confirm", lambda *_, **__: (_ for _ in ()).throw(__import__("click").Abort))

    assert run_command(["reset", "latest", "--sinks"]) == 130

    assert (CHECKPOINTS / "latest" / "offsets" / "7").exists()
    assert Path("lake/latest/part.parquet").exists()


@pytest.mark.usefixtures("project")
def test_a_query_that_runs_is_not_reset(capsys: pytest.CaptureFixture[str]) -> None:
    with CheckpointLock(CHECKPOINTS / "latest", "shop.latest"):
        assert run_command(["reset", "latest", "--yes"]) == 3

    assert (CHECKPOINTS / "latest" / "offsets" / "7").exists()
    assert "stop that run first" in capsys.readouterr().err


def test_a_folder_that_another_query_writes_or_reads_stays(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pipeline.yml").write_text(SPEC.replace("lake/copy", "lake/latest"))
    assert run_command(["reset", "latest", "--sinks", "--yes"]) == 3
    assert "query 'copy' also writes it" in capsys.readouterr().err

    reading = SPEC.replace("views:", "  again: {delta: lake/copy}\nviews:")
    (project / "pipeline.yml").write_text(reading)
    assert run_command(["reset", "copy", "--sinks", "--yes"]) == 3
    assert "source 'again' reads it" in capsys.readouterr().err

    assert Path("lake/latest/part.parquet").exists()
    assert Path("lake/copy/part.parquet").exists()


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("words", [[], ["latest", "--all"], ["lates"]])
def test_a_reset_needs_names_that_exist_or_all(words: list[str]) -> None:
    assert run_command(["reset", "--yes", *words]) == 2
    assert (CHECKPOINTS / "latest" / "offsets" / "7").exists()
