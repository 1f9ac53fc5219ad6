"""Batches that wait for a sink: no command writes past them, and each refusal says how they are delivered."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from millstream.checkpoint import adoption_log
from millstream.checkpoint.lock import CheckpointLock
from millstream.cli.main import run_command
from millstream.cli.plan import apply
from millstream.cli.project import open_project
from millstream.diagnostics.failure import CheckpointMismatch
from millstream.engine.checkpoint_changes import former_folder
from millstream.engine.delivery.batch_spool import BatchSpool, list_spooled_batches
from millstream.engine.delivery.undelivered import check_start, orphan_warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.pipeline.model import Pipeline

SPEC = """name: shop
sources:
  orders: {json: in, schema: {id: string}}
queries:
  copy: {from: orders, to: [{delta: lake/out, on_error: dead_letter}]}
"""
OWN, OTHER, THIRD = (f"{digit * 8}-1111-1111-1111-111111111111" for digit in "123")
SINK = "delta:lake/out"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A query whose batches 1 and 2 wait for its sink."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    write_spec()
    (checkpoints() / "copy").mkdir(parents=True)
    (checkpoints() / "copy" / "metadata").write_text(json.dumps({"id": OWN}))
    set_aside(OWN, 1, 2)
    return tmp_path


def write_spec(old: str = "", new: str = "") -> None:
    Path("pipeline.yml").write_text(SPEC.replace(old, new) if old else SPEC)


def checkpoints() -> Path:
    return Path(".millstream/checkpoints")


def set_aside(checkpoint: str, *batches: int, name: str = "copy") -> None:
    for batch in batches:
        folder = shelf(checkpoint, name) / str(batch)
        folder.mkdir(parents=True)
        note = {
            "query": "copy",
            "reason": "away",
            "at": "2026-01-01T00:00:00+00:00",
            "schema": {"type": "struct", "fields": []},
        }
        (folder / "_note.json").write_text(json.dumps(note))


def shelf(checkpoint: str, name: str = "copy") -> Path:
    return checkpoints() / "_set_aside" / name / checkpoint / quote(SINK, safe="")


def load_with_checkpoint(name: str, query_id: str) -> Pipeline:
    """The spec whose query has a checkpoint with this name and id."""
    write_spec("from: orders", f"from: orders, checkpoint: {checkpoints() / name}")
    (checkpoints() / name).mkdir(exist_ok=True)
    (checkpoints() / name / "metadata").write_text(json.dumps({"id": query_id}))
    pipeline = open_project(None, (), None).pipeline
    assert pipeline is not None
    return pipeline


def waiting(checkpoint: str = OWN) -> list[str]:
    return sorted(folder.name for folder in shelf(checkpoint).iterdir())


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", on_error: dead_letter", "", ["no longer has 'on_error: dead_letter'", "replay copy"]),
        (
            "lake/out",
            "lake/other",
            ["which the spec does not have", "put the sink back", f"delete copy --sink {SINK}"],
        ),
    ],
    ids=["the setting is taken off", "the sink is renamed"],
)
def test_a_run_that_would_write_past_waiting_batches_is_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str], old: str, new: str, said: Sequence[str]
) -> None:
    write_spec(old, new)

    assert run_command(["run", "--until-caught-up", "--no-page"]) == 3

    errors = capsys.readouterr().err
    assert "2 batches of query 'copy' wait for sink 'delta:lake/out'" in errors
    assert [words for words in said if words not in errors] == []
    assert "starting Spark" not in errors
    assert waiting() == ["1", "2"]


@pytest.mark.usefixtures("project")
def test_a_run_from_another_checkpoint_is_refused_while_batches_of_the_former_wait(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.rmtree(checkpoints() / "copy")

    assert run_command(["run", "--until-caught-up", "--no-page"]) == 3

    errors = capsys.readouterr().err
    assert f"from another checkpoint (id {OWN})" in errors
    assert "millstream deadletter replay copy" in errors


@pytest.mark.usefixtures("project")
def test_a_replay_for_a_sink_that_the_spec_lacks_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    write_spec("lake/out", "lake/other")

    assert run_command(["deadletter", "replay"]) == 3

    errors = capsys.readouterr().err
    assert "put the sink back into the spec" in errors
    assert "starting Spark" not in errors
    assert waiting() == ["1", "2"]


@pytest.mark.usefixtures("project")
def test_batches_of_a_query_that_the_spec_lacks_are_listed_and_may_be_deleted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_spec("copy:", "renamed:")

    assert run_command(["deadletter", "list"]) == 0
    listed = capsys.readouterr()
    assert run_command(["deadletter", "delete", "copy", "--yes"]) == 0

    assert "copy batch 1 waits for delta:lake/out" in listed.out
    assert "this spec does not have the query: put it back" in listed.err
    assert waiting() == []


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([], []),
        (["--batch", "1"], ["2"]),
        (["--sink", "delta"], []),
        (["--sink", "postgres"], ["1", "2"]),
        (["--batch", "7"], ["1", "2"]),
    ],
)
def test_the_batches_that_are_named_are_deleted_and_no_others(given: list[str], left: list[str]) -> None:
    assert run_command(["deadletter", "delete", "copy", "--yes", *given]) == 0

    assert waiting() == left


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["copy:", "renamed:"], ids=["of this spec", "of another one"])
def test_nothing_is_deleted_under_a_run(capsys: pytest.CaptureFixture[str], name: str) -> None:
    write_spec("copy:", name)

    with CheckpointLock(checkpoints() / "copy", "shop.copy"):
        assert run_command(["deadletter", "delete", "copy", "--yes"]) == 3

    assert "is held by 'shop.copy'" in capsys.readouterr().err
    assert waiting() == ["1", "2"]


@pytest.mark.usefixtures("project")
def test_a_batch_that_was_deleted_is_not_missing_at_the_next_start() -> None:
    assert run_command(["deadletter", "delete", "copy", "--yes", "--batch", "2"]) == 0

    assert adoption_log.read_missing(checkpoints() / "copy", f"{OWN}/{SINK}") == {2}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["copy", "v2"], ids=["spooled by an older version", "spooled"])
def test_a_batch_of_a_query_with_its_own_checkpoint_is_recorded_in_that_one(name: str) -> None:
    load_with_checkpoint("v2", OTHER)
    set_aside(OTHER, 3, name=name)

    assert run_command(["deadletter", "delete", "copy", "--yes"]) == 0

    assert not (shelf(OTHER, name) / "3").exists()
    assert adoption_log.read_missing(checkpoints() / "v2", f"{OTHER}/{SINK}") == {3}
    assert adoption_log.read_missing(checkpoints() / "copy", f"{OTHER}/{SINK}") == set()
    assert waiting() == ["1", "2"]


@pytest.mark.usefixtures("project")
def test_batches_of_another_spec_with_such_a_query_neither_stop_a_start_nor_are_deleted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_aside(THIRD, 7, name="a-copy")
    (checkpoints() / "a-copy").mkdir()
    pipeline = load_with_checkpoint("b-copy", OTHER)

    check_start(pipeline, ["copy"])

    assert run_command(["deadletter", "delete", "copy", "--yes"]) == 0
    assert "there is no such spooled batch" in capsys.readouterr().err
    assert (shelf(THIRD, "a-copy") / "7").exists()
    for warning, name in zip(orphan_warnings(pipeline), ("a-copy", "copy"), strict=True):
        assert f"with checkpoint {checkpoints().absolute() / name}, which this spec does not name" in warning


@pytest.mark.usefixtures("project")
def test_batches_that_an_older_version_has_spooled_for_a_checkpoint_that_is_gone_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_aside(THIRD, 7)
    shutil.rmtree(checkpoints() / "copy")
    pipeline = load_with_checkpoint("v2", OTHER)

    check_start(pipeline, ["copy"])

    (warning,) = orphan_warnings(pipeline)
    assert "and their checkpoint is gone" in warning
    assert run_command(["deadletter", "list"]) == 0
    assert " 7 " in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_batches_of_another_checkpoint_in_the_folder_of_this_one_stop_a_start() -> None:
    set_aside(THIRD, 7, name="b-copy")
    pipeline = load_with_checkpoint("b-copy", OTHER)

    with pytest.raises(CheckpointMismatch, match=f"from another checkpoint \\(id {THIRD}\\)"):
        check_start(pipeline, ["copy"])


@pytest.mark.usefixtures("project")
def test_batches_follow_those_that_an_older_version_has_spooled() -> None:
    set_aside(OTHER, 3)
    pipeline = load_with_checkpoint("v2", OTHER)

    assert BatchSpool.of(pipeline, "copy", OTHER, SINK).folder == shelf(OTHER).absolute()
    shutil.rmtree(checkpoints() / "_set_aside")
    assert BatchSpool.of(pipeline, "copy", OTHER, SINK).folder == shelf(OTHER, "v2").absolute()


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            ["rewind", "copy", "--to-batch", "0"],
            "would take the place of new batches with their numbers",
        ),
        (["move", "copy", "elsewhere/copy"], "would not be found from another folder"),
    ],
)
def test_a_checkpoint_is_neither_rewound_nor_moved_to_another_folder_while_batches_wait(
    capsys: pytest.CaptureFixture[str], command: list[str], reason: str
) -> None:
    for batch in range(3):
        for log in ("offsets", "commits"):
            (checkpoints() / "copy" / log).mkdir(exist_ok=True)
            (checkpoints() / "copy" / log / str(batch)).write_text("v1\n{}\n0")

    assert run_command(["checkpoint", *command]) == 3

    errors = capsys.readouterr().err
    assert f"2 spooled batches of query 'copy' for {SINK} {reason}" in errors
    assert "deliver them first: 'millstream deadletter replay copy'" in errors
    assert (checkpoints() / "copy" / "offsets" / "2").exists()
    shutil.rmtree(checkpoints() / "_set_aside")
    assert run_command(["checkpoint", *command]) == 0


@pytest.mark.usefixtures("project")
def test_a_move_within_a_folder_keeps_waiting_batches_where_they_are_found() -> None:
    assert run_command(["checkpoint", "move", "copy", str(checkpoints() / "copy2")]) == 0
    assert waiting() == ["1", "2"]
    pipeline = load_with_checkpoint("copy2", OWN)
    assert [batch.batch for batch in list_spooled_batches(pipeline, ["copy"])] == [1, 2]

    set_aside(OWN, 3, name="copy2")
    assert run_command(["checkpoint", "move", "copy", str(checkpoints() / "copy3")]) == 3


@pytest.mark.usefixtures("project")
def test_a_checkpoint_is_not_brought_from_a_folder_next_to_which_batches_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    former = checkpoints().absolute() / "copy"
    monkeypatch.setattr(former_folder, "find_former_folder", lambda *_: (former, "copy"))
    write_spec(
        "queries:", f"defaults: {{checkpoints: {checkpoints().absolute().parent / 'elsewhere'}}}\nqueries:"
    )
    pipeline = open_project(None, (), None).pipeline
    assert pipeline is not None

    apply._bring_checkpoint(pipeline, "copy", yes=True)

    assert "batches of 'copy' wait for a sink" in capsys.readouterr().out
    assert former.is_dir()
    shutil.rmtree(checkpoints() / "_set_aside")
    apply._bring_checkpoint(pipeline, "copy", yes=True)
    assert not former.exists()
