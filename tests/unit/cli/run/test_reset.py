"""`millstream reset`: what is deleted, what stays, and what is refused."""

from __future__ import annotations

import io
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
@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ("n\n", 1, "nothing was deleted"),
        (
            "",
            2,
            "the question cannot be answered: standard input has ended\n  fix: to answer every question with yes",
        ),
    ],
    ids=["no", "no standard input"],
)
def test_a_question_without_a_yes_ends_in_one_sentence(
    answer: str,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))

    assert run_command(["reset", "latest"]) == code

    assert message in capsys.readouterr().err
    assert (CHECKPOINTS / "latest").exists()


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
    assert "query 'copy' also writes lake/latest" in capsys.readouterr().err

    reading = SPEC.replace("views:", "  again: {delta: lake/copy}\nviews:")
    (project / "pipeline.yml").write_text(reading)
    assert run_command(["reset", "copy", "--sinks", "--yes"]) == 3
    assert "source 'again' reads lake/copy" in capsys.readouterr().err

    assert Path("lake/latest/part.parquet").exists()
    assert Path("lake/copy/part.parquet").exists()


@pytest.mark.parametrize(
    ("sink", "line", "reason"),
    [
        ("delta: lake", "", "query 'copy' also writes lake/copy"),
        ("delta: lake/copy/late", "", "query 'copy' also writes lake/copy"),
        ("delta: linked", "", "query 'copy' also writes lake/copy"),
        (
            "delta: lake/late",
            "  late: {parquet: lake/late/day=1, schema: {id: string}}",
            "source 'late' reads lake/late/day=1",
        ),
        (
            "delta: lake/late",
            "  late: {parquet: lake/late/day=*, schema: {id: string}}",
            "source 'late' reads lake/late/day=*",
        ),
        (
            "delta: lake/late",
            "  late: {parquet: 'lake/{late,soon}', schema: {id: string}}",
            "source 'late' reads lake/{late,soon}",
        ),
        ("delta: lake/late", "  late: {delta: lake}", "source 'late' reads lake"),
        (
            "delta: lake/2026-01/late",
            "  late: {json: {path: 'lake/2026-*', recursive_file_lookup: true}, schema: {id: string}}",
            "source 'late' reads lake/2026-*",
        ),
        ("delta: lake/late", "  late: {json: 'lake/*', schema: {id: string}}", "source 'late' reads lake/*"),
        (
            "delta: lake/day=1",
            "  late: {json: lake, schema: {id: string}}",
            "source 'late' reads lake",
        ),
        (
            "delta: lake/deep/day=1",
            "  late: {json: lake, schema: {id: string}}",
            "source 'late' reads lake",
        ),
        ("delta: .millstream", "", "the checkpoint of query 'copy' is .millstream/checkpoints/copy"),
        (
            "delta: out/read",
            "  late: {json: {path: new, clean_source: archive, archive_to: out/read/done}, schema: {id: string}}",
            "source 'late' archives its files to out/read/done",
        ),
        (
            "delta: out}, {duckdb: {path: out/shop.duckdb, table: latest}",
            "",
            "duckdb, another sink of query 'latest', writes out/shop.duckdb",
        ),
    ],
)
def test_a_folder_that_overlaps_with_a_path_in_use_stays(
    project: Path, capsys: pytest.CaptureFixture[str], sink: str, line: str, reason: str
) -> None:
    changed = SPEC.replace("output_mode: update\n", "").replace(
        "delta: {path: lake/latest, merge_on: [id]}", sink
    )
    (project / "pipeline.yml").write_text(changed.replace("views:", f"{line}\nviews:"))
    (project / "linked").symlink_to("lake/copy")

    code = run_command(["reset", "latest", "--sinks", "--yes"])

    assert (code, reason in (text := capsys.readouterr().err)) == (3, True), text
    assert Path("lake/copy/part.parquet").exists()
    assert (CHECKPOINTS / "latest" / "offsets" / "7").exists()


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("lake/2026-*", ""),
        ("'*/new/*.json'", ""),
        ("lake/l?test", ""),
        ("lake", ""),
        (".", ", path_glob_filter: late.json"),
    ],
)
def test_a_folder_that_no_source_reads_is_deleted(project: Path, path: str, settings: str) -> None:
    source = f"  late: {{json: {{path: {path}{settings}}}, schema: {{id: string}}}}"
    changed = SPEC.replace("lake/latest", "lake/latest/now").replace("views:", f"{source}\nviews:")
    (project / "pipeline.yml").write_text(changed)
    Path("lake/latest/now").mkdir()

    assert run_command(["reset", "latest", "--sinks", "--yes"]) == 0

    assert not Path("lake/latest/now").exists()


@pytest.mark.parametrize(
    ("sink", "fix"),
    [
        ("delta: lake/latest/copy", "reset both: millstream reset latest copy --sinks"),
        (
            "duckdb: {path: lake/latest/shop.duckdb, table: copy}",
            "leave --sinks out, and delete the files of the sink yourself",
        ),
    ],
)
def test_the_fix_names_queries_that_can_be_reset_together(
    project: Path, capsys: pytest.CaptureFixture[str], sink: str, fix: str
) -> None:
    (project / "pipeline.yml").write_text(SPEC.replace("delta: lake/copy", sink))

    assert run_command(["reset", "latest", "--sinks", "--yes"]) == 3

    assert f"fix: {fix}" in capsys.readouterr().err


def test_a_checkpoint_in_the_folder_of_a_sink_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pipeline.yml").write_text(SPEC.replace("lake/copy}]", "lake/copy}], checkpoint: lake/latest"))

    assert run_command(["reset", "latest", "--sinks", "--yes"]) == 3

    assert "the checkpoint of query 'copy' is lake/latest\n" in capsys.readouterr().err


def test_a_folder_that_contains_the_spec_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pipeline.yml").write_text(SPEC.replace("delta: lake/copy", f"delta: {project}"))

    assert run_command(["reset", "--all", "--sinks", "--yes"]) == 3

    assert "the spec is in this folder" in capsys.readouterr().err
    assert Path("pipeline.yml").exists()


def test_two_queries_with_nested_folders_are_reset_together(project: Path) -> None:
    (project / "pipeline.yml").write_text(SPEC.replace("delta: lake/copy", "delta: lake/latest/copy"))
    Path("lake/latest/copy").mkdir()

    assert run_command(["reset", "latest", "copy", "--sinks", "--yes"]) == 0

    assert not Path("lake/latest").exists()


def test_the_file_of_a_database_is_no_folder_that_is_deleted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = "duckdb: {path: lake/shop.duckdb, table: copy}"
    (project / "pipeline.yml").write_text(SPEC.replace("delta: lake/copy", sink))

    assert run_command(["reset", "copy", "--sinks", "--yes"]) == 0

    line = next(line for line in capsys.readouterr().err.splitlines() if "sink duckdb" in line)
    assert "deleted too" not in line
    assert 'empty it first: duckdb lake/shop.duckdb "DELETE FROM copy"' in line


def test_behind_a_link_the_files_are_deleted_and_the_link_stays(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [CHECKPOINTS / "latest", Path("lake/latest")]
    for number, folder in enumerate(folders):
        folder.rename(project / f"disk{number}")
        folder.symlink_to(project / f"disk{number}")

    assert run_command(["reset", "latest", "--sinks", "--yes"]) == 0

    assert [list(folder.iterdir()) for folder in folders] == [[], []]
    assert all(folder.is_symlink() for folder in folders)
    assert capsys.readouterr().out.splitlines() == [f"deleted everything in {folder}" for folder in folders]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("words", [[], ["latest", "--all"], ["lates"]])
def test_a_reset_needs_names_that_exist_or_all(words: list[str]) -> None:
    assert run_command(["reset", "--yes", *words]) == 2
    assert (CHECKPOINTS / "latest" / "offsets" / "7").exists()
