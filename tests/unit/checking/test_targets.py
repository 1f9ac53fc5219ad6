"""What a check takes for a spec, a script and a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.targets import CheckTarget, TargetKind, find_targets, list_files_of_project
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


def create_files(folder: Path, *files: str) -> Path:
    for name in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import pyspark\n")
    return folder


def list_targets(*paths: Path) -> list[tuple[str, str]]:
    return [(target.kind.value, target.path.name) for target in find_targets(paths)]


def test_a_file_of_yaml_is_a_spec(tmp_path: Path) -> None:
    create_files(tmp_path, "orders.yml")

    assert list_targets(tmp_path / "orders.yml") == [("spec", "orders.yml")]


def test_a_script_is_ours_when_it_imports_millstream(tmp_path: Path) -> None:
    create_files(tmp_path, "job.py")
    (tmp_path / "pipeline.py").write_text("import millstream as ms\n")

    assert list_targets(tmp_path / "job.py", tmp_path / "pipeline.py") == [
        ("script", "job.py"),
        ("spec", "pipeline.py"),
    ]


def test_a_folder_with_a_spec_stands_for_it_alone(tmp_path: Path) -> None:
    create_files(tmp_path, "pipeline.yml", "other/pipeline.yml")

    assert find_targets([tmp_path]) == [CheckTarget(TargetKind.SPEC, tmp_path / "pipeline.yml")]


def test_a_folder_without_one_stands_for_all_below_in_their_order(tmp_path: Path) -> None:
    create_files(tmp_path, "b/pipeline.yml", "a/deep/pipeline.yml", "c/spark-pipeline.yml")

    assert list_targets(tmp_path) == [("spec", "pipeline.yml"), ("spec", "pipeline.yml"), ("project", "c")]
    assert [target.folder.name for target in find_targets([tmp_path])] == ["deep", "b", "c"]


@pytest.mark.parametrize("hidden", [".venv", ".git", "node_modules", "build"])
def test_what_others_put_below_is_left_out(tmp_path: Path, hidden: str) -> None:
    create_files(tmp_path, "a/pipeline.yml", f"{hidden}/x/pipeline.yml")

    assert len(find_targets([tmp_path])) == 1


def test_the_file_of_a_project_stands_for_its_folder(tmp_path: Path) -> None:
    create_files(tmp_path, "spark-pipeline.yml")

    assert find_targets([tmp_path / "spark-pipeline.yml"]) == [CheckTarget(TargetKind.PROJECT, tmp_path)]


def test_a_target_that_is_named_twice_is_checked_once(tmp_path: Path) -> None:
    create_files(tmp_path, "pipeline.yml")

    assert len(find_targets([tmp_path, tmp_path / "pipeline.yml"])) == 1


@pytest.mark.parametrize("name", ["empty", "absent.yml"])
def test_nothing_to_check_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(InvalidInput, match=name):
        find_targets([tmp_path / name])


def test_a_folder_of_scripts_stands_for_those_that_start_queries(tmp_path: Path) -> None:
    create_files(tmp_path, "jobs/helper.py", "shop/pipeline.yml", "shop/load.py")
    for name in ("jobs/a.py", "jobs/b.ipynb", "shop/query.py"):
        (tmp_path / name).write_text("frame.writeStream.start()\n")

    assert list_targets(tmp_path) == [("script", "a.py"), ("script", "b.ipynb"), ("spec", "pipeline.yml")]


def test_the_keys_of_a_declarative_spec_decide_and_not_its_name(tmp_path: Path) -> None:
    create_files(tmp_path, "orders.yml")
    (tmp_path / "my-pipeline.yaml").write_text("name: x\nlibraries:\n  - glob: {include: a.sql}\n")
    (tmp_path / "old.yml").write_text("name: x\ndefinitions: []\n")

    assert list_targets(tmp_path / "my-pipeline.yaml", tmp_path / "old.yml") == [
        ("project", "my-pipeline.yaml"),
        ("project", "old.yml"),
    ]
    assert list_targets(tmp_path) == [("project", "my-pipeline.yaml"), ("project", "old.yml")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tables.py", "import dlt\n"),
        ("tables.py", "from pyspark import pipelines as dp\n"),
        ("tables.ipynb", '{"cells": [{"source": [\n     "import dlt\\n"]}]}'),
    ],
)
def test_a_file_that_declares_tables_is_a_project_of_one_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    assert list_targets(tmp_path / name) == [("project", name)]


def test_the_files_of_a_folder_that_declare_tables_are_one_project(tmp_path: Path) -> None:
    for name in ("a.py", "b.ipynb"):
        (tmp_path / name).write_text("import dlt\n")
    (tmp_path / "c.py").write_text("frame.writeStream.start()\n")

    assert find_targets([tmp_path]) == [
        CheckTarget(TargetKind.PROJECT, tmp_path),
        CheckTarget(TargetKind.SCRIPT, tmp_path / "c.py"),
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE OR REFRESH STREAMING LIVE TABLE t AS SELECT 1", ["port"]),
        ("create live table t as select 1", ["port"]),
        ("CREATE STREAMING TABLE t AS SELECT 1", ["port"]),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", []),
    ],
)
def test_a_folder_of_sql_is_a_project_if_its_words_are_those_of_spark(
    tmp_path: Path, statement: str, expected: list[str]
) -> None:
    create_files(tmp_path, "port/flows.sql", "pipeline.py")
    (tmp_path / "port" / "flows.sql").write_text(f"{statement};\n")
    (tmp_path / "job.py").write_text("frame.writeStream.start()\n")

    assert [target.path.name for target in find_targets([tmp_path])] == ["job.py", *expected]


def test_a_file_of_sql_that_declares_streaming_tables_is_a_project_itself(tmp_path: Path) -> None:
    create_files(tmp_path, "flows.sql")
    (tmp_path / "flows.sql").write_text(
        "-- Databricks notebook source\nCREATE INCREMENTAL LIVE TABLE t AS SELECT 1\n"
    )

    (target,) = find_targets([tmp_path / "flows.sql"])

    assert (target.kind, target.path.name) == (TargetKind.PROJECT, "flows.sql")


@pytest.mark.parametrize(("name", "language"), [("Job.scala", "Scala"), ("job.sql", "SQL"), ("job.R", "R")])
def test_another_language_is_refused_by_its_name(tmp_path: Path, name: str, language: str) -> None:
    create_files(tmp_path, name)

    with pytest.raises(InvalidInput, match=f"is {language}"):
        find_targets([tmp_path / name])


def test_folders_that_declare_tables_beside_each_other_are_one_project(tmp_path: Path) -> None:
    declared = (
        "from pyspark import pipelines as dp\n\n@dp.table\ndef t():\n    return spark.read.table('a')\n"
    )
    create_files(tmp_path, "bronze/a.py", "silver/b.py", "gold/c.sql")
    for name in ("bronze/a.py", "silver/b.py"):
        (tmp_path / name).write_text(declared)
    (tmp_path / "gold" / "c.sql").write_text("CREATE OR REFRESH MATERIALIZED VIEW c AS SELECT * FROM t")

    assert list_targets(tmp_path) == [("project", tmp_path.name)]
    assert [file.name for file in list_files_of_project(tmp_path)] == ["a.py", "c.sql", "b.py"]

    (tmp_path / "silver" / "job.py").write_text("frame.writeStream.start()\n")
    assert ("script", "job.py") in list_targets(tmp_path)


def test_a_file_of_declared_tables_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text("import dlt\n", encoding="utf-8-sig")

    assert list_targets(tmp_path / "flows.py") == [("project", "flows.py")]
