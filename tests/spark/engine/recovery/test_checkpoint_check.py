"""A damaged checkpoint: Spark ends on it or goes wrong; it is refused, or mended and no sink changes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import CheckpointError
from millstream.engine.recovery.checkpoint_check import check_checkpoints
from millstream.engine.run import RunOptions
from spark.conftest import Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}
C = {"id": "c", "amount": 5, "at": "2026-01-01T12:14:00Z"}


def run(project: Project, query: str = "sums") -> bool:
    """Run one query until it is caught up."""
    return project.run(project.pipeline(), RunOptions((query,), until_caught_up=True))


def run_two(project: Project) -> None:
    """Two batches of `sums`, and the empty ones that follow them."""
    project.add_lines(A)
    project.add_lines(B)
    run(project)


@pytest.fixture
def project(request: pytest.FixtureRequest, prepared: Callable[..., Project]) -> Project:
    """A fresh project, or one that has run for a test that asks for the folder of its checkpoint."""
    if "folder" in request.fixturenames:
        return prepared("checkpoint_check", run_two)
    return Project(request.getfixturevalue("tmp_path"), request.getfixturevalue("spark"))


@pytest.fixture
def folder(project: Project) -> Path:
    """The checkpoint of `sums` after two batches and the empty ones that follow them."""
    return project.folder / ".millstream" / "checkpoints" / "sums"


def empty(folder: Path, log: str) -> Path:
    """Make the newest file of a log empty, as a power cut leaves it."""
    newest = max((int(file.name) for file in (folder / log).iterdir() if file.name.isdigit()), default=0)
    file = folder / log / str(newest)
    file.write_text("")
    file.with_name(f".{newest}.crc").unlink(missing_ok=True)
    return file


def test_a_sound_checkpoint_of_spark_is_found_sound(project: Project, folder: Path) -> None:
    check_checkpoints(project.pipeline(), ["sums"])

    assert folder.is_dir()


def test_a_kill_while_the_first_offsets_are_written_does_not_keep_the_query_from_starting(
    project: Project,
) -> None:
    project.add_lines(A)
    offsets = project.folder / ".millstream" / "checkpoints" / "sums" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.6f1c9a60-7f0e-4d8e-9a53-0a3f9a1b2c3d.tmp").write_text("v1\n")

    assert run(project)

    assert (offsets / "0").exists()


def test_torn_first_offsets_are_mended_with_the_state_that_they_led_to(project: Project) -> None:
    project.add_lines(A)
    run(project)
    rows = project.rows("sums")
    # The power went after the state was written and before the sink's commit.
    shutil.rmtree(project.folder / "sums")
    folder = project.folder / ".millstream" / "checkpoints" / "sums"
    for log in ("offsets", "commits"):
        for file in (folder / log).iterdir():
            file.unlink()
    (folder / "offsets" / "0").write_text("")

    check_checkpoints(project.pipeline(), ["sums"], repair=True)

    assert run(project)
    assert project.rows("sums") == rows


def test_an_empty_commit_ends_spark_and_mended_it_changes_no_sink(project: Project, folder: Path) -> None:
    before = project.rows("sums")
    empty(folder, "commits")

    assert not run(project)
    with pytest.raises(CheckpointError, match=r"commits/\d+ is empty") as error:
        check_checkpoints(project.pipeline(), ["sums"])
    assert "run --repair --select sums" in error.value.fix
    check_checkpoints(project.pipeline(), ["sums"], repair=True)
    project.add_lines(C)
    fine = run(project)

    assert fine
    assert len(project.rows("sums")) == len(before) + 1
    assert project.rows("sums")[0] == before[0]


def test_empty_offsets_of_a_batch_that_a_sink_holds_are_not_planned_again(project: Project) -> None:
    project.add_lines(A)
    project.add_lines(B)
    run(project, "copy")
    project.forget_last_commit("copy")
    empty(project.folder / ".millstream" / "checkpoints" / "copy", "offsets")
    check_checkpoints(project.pipeline(), ["copy"], repair=True)
    project.add_lines(C)

    fine = run(project, "copy")

    assert not fine
    (failed,) = project.list_events("query_failed")
    assert failed.data["cause"] == "checkpoint"
    assert "has batch 1 of query 'copy'" in failed.data["reason"]


def test_empty_offsets_of_a_batch_that_no_sink_holds_are_planned_again(project: Project) -> None:
    project.add_lines(A)
    run(project)
    folder = project.folder / ".millstream" / "checkpoints" / "sums"
    newest = project.numbers("sums", "offsets")[-1]
    (folder / "offsets" / str(newest + 1)).write_text("")
    check_checkpoints(project.pipeline(), ["sums"], repair=True)
    project.add_lines(B)

    assert run(project)
    assert [amount for _, amount in project.rows("sums")] == [7]


def test_offsets_that_are_gone_under_a_commit_are_refused(project: Project, folder: Path) -> None:
    newest = project.numbers("sums", "offsets")[-1]
    (folder / "offsets" / str(newest)).unlink()

    with pytest.raises(CheckpointError, match=f"offsets/{newest} is gone, and batch {newest} was committed"):
        check_checkpoints(project.pipeline(), ["sums"], repair=True)


def test_a_checkpoint_without_its_logs_is_refused_by_the_sinks(project: Project, folder: Path) -> None:
    shutil.rmtree(folder / "offsets")
    shutil.rmtree(folder / "commits")
    shutil.rmtree(folder / "sources")
    shutil.rmtree(folder / "state")
    project.add_lines(C)

    fine = run(project)

    assert not fine
    assert [event.data["cause"] for event in project.list_events("query_failed")] == ["checkpoint"]


def test_a_lost_delta_of_one_partition_is_named(project: Project, folder: Path) -> None:
    newest = max((folder / "state/0/1").glob("*.delta"), key=lambda file: int(file.stem))
    newest.unlink()

    with pytest.raises(CheckpointError, match=f"state/0/1/{newest.name} is gone"):
        check_checkpoints(project.pipeline(), ["sums"], repair=True)


def test_state_that_is_gone_wholly_is_told_in_the_same_words(project: Project, folder: Path) -> None:
    shutil.rmtree(folder / "state")
    project.add_lines(C)

    assert not run(project)
    failed = project.list_events("query_failed")[0]
    assert failed.data["cause"] == "checkpoint"
    assert "a checkpoint file is missing" in failed.data["reason"]


def test_an_entry_of_the_files_that_were_read_is_missed(project: Project, folder: Path) -> None:
    (folder / "sources" / "0" / "0").unlink()

    with pytest.raises(CheckpointError, match="sources/0/0 is gone"):
        check_checkpoints(project.pipeline(), ["sums"], repair=True)


def test_the_id_comes_back_from_the_record(project: Project, folder: Path) -> None:
    before = (folder / "metadata").read_text()
    (folder / "metadata").write_text("")
    check_checkpoints(project.pipeline(), ["sums"], repair=True)
    rows = project.rows("sums")

    assert run(project)
    assert (folder / "metadata").read_text().strip() == before.strip()
    assert project.rows("sums") == rows
