"""A query that reads one source at two places of its plan: Spark keeps one folder for both, and two offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.backfill.inputs import read_progress
from millstream.checkpoint import metadata
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.engine.recovery.uncommitted_batch import find_uncommitted_batch

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}
BOTH = "SELECT id, amount FROM orders UNION ALL SELECT id, amount FROM orders"


@pytest.fixture
def pipeline(project: Project) -> Pipeline:
    """`orders` united with itself, in a table."""
    copy = {"from": "both", "to": {"delta": str(project.folder / "table")}}
    return project.pipeline(views={"both": BOTH}, queries={"copy": copy})


@pytest.fixture
def folder(project: Project) -> Path:
    """The checkpoint."""
    return project.folder / ".millstream" / "checkpoints" / "copy"


def test_its_checkpoint_is_sound_and_it_goes_on_from_there(
    project: Project, pipeline: Pipeline, folder: Path
) -> None:
    project.add_lines(A)
    project.run(pipeline)
    damages = find_damage(folder)
    project.add_lines(B)
    fine = project.run(pipeline)

    assert damages == []
    assert fine
    assert [row[0] for row in project.rows("table")] == ["a", "a", "b", "b"]


def test_an_entry_that_is_gone_from_the_one_folder_is_missed(
    project: Project, pipeline: Pipeline, folder: Path
) -> None:
    project.add_lines(A)
    project.run(pipeline)
    (folder / "sources" / "0" / "0").unlink()

    assert str(folder / "sources" / "0" / "0") in str(find_damage(folder)[0])


def test_what_a_batch_reads_is_told_for_each_place(project: Project, pipeline: Pipeline) -> None:
    project.add_lines(A)
    project.run(pipeline)
    project.forget_last_commit("copy")

    uncommitted_batch = find_uncommitted_batch(pipeline, "copy")

    assert uncommitted_batch is not None
    assert len(uncommitted_batch.reads) == 2
    assert all("001.json" in clause for clause in uncommitted_batch.reads)


def test_a_backfill_knows_the_files_that_were_read(
    project: Project, pipeline: Pipeline, folder: Path
) -> None:
    project.add_lines(A)
    project.run(pipeline)

    record, ends = metadata.read(folder), read_progress(pipeline, "copy").ends

    assert record is not None
    assert [record.log(0), record.log(1)] == [0, 0]
    assert ends is not None
    assert ends["orders"] is not None
    assert [file.rpartition("/")[2] for file in ends["orders"].files] == ["001.json"]
