"""The modules next to a spec reach executors in one archive, without what is not the project's."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from millstream.spark import internals
from millstream.spark.cluster import code_archive


@dataclass
class Context:
    """What a session's context has of files."""

    folder: Path
    master: str = "spark://127.0.0.1:7077"
    sent: list[str] = field(default_factory=list)
    _python_includes: list[str] = field(default_factory=list)

    @property
    def listFiles(self) -> list[str]:  # noqa: N802 - Spark's name
        return [f"spark://driver:1/files/{path.rpartition('/')[2]}" for path in self.sent]

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {"spark.local.dir": str(self.folder)}

    def addPyFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        self.sent.append(path)
        sys.path.insert(1, path)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    (tmp_path / "local").mkdir()
    context = Context(tmp_path / "local")

    def active() -> Any:
        return context

    monkeypatch.setattr(internals, "active_context", active)
    return context


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in (
        "transforms.py",
        "lib/rates.py",
        "venv/lib/foreign.py",
        ".hidden/private.py",
        "lake/part.parquet",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "venv" / "pyvenv.cfg").write_text("")
    return folder


def test_modules_are_sent_without_those_of_environments_and_hidden_folders(
    context: Context, project: Path
) -> None:
    code_archive.ship_project(project)

    (archive,) = context.sent
    assert zipfile.ZipFile(archive).namelist() == ["lib/rates.py", "transforms.py"]


def test_the_same_modules_are_sent_once_and_changed_ones_again(context: Context, project: Path) -> None:
    code_archive.ship_project(project)
    code_archive.ship_project(project)
    (project / "transforms.py").write_text("changed = True")
    code_archive.ship_project(project)

    assert len(set(context.sent)) == len(context.sent) == 2


def test_the_driver_does_not_import_from_the_archive(context: Context, project: Path) -> None:
    before = list(sys.path)

    code_archive.ship_project(project)

    assert context.sent
    assert sys.path == before


def test_workers_of_a_local_session_import_from_the_folder_itself(context: Context, project: Path) -> None:
    context.master = "local[2]"

    code_archive.ship_project(project)

    assert context.sent == []
    assert context._python_includes == [str(project)]


def test_the_folder_of_another_project_replaces_that_of_the_last_one_and_no_archive(
    context: Context, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.master, context._python_includes = "local[2]", ["jobs.zip", str(project)]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)

    for _ in range(2):
        code_archive.ship_project(Path("other"))

    assert context._python_includes == ["jobs.zip", str(tmp_path / "other")]


def test_a_local_session_of_spark_submit_gets_the_modules_as_its_workers_started_elsewhere(
    context: Context, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.master = "local[2]"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    code_archive.ship_project(project)

    assert len(context.sent) == 1
    assert context._python_includes == []


def test_the_package_is_sent_with_the_modules_that_tasks_of_writers_import(context: Context) -> None:
    code_archive.ship_package(context)  # type: ignore[arg-type]

    names = zipfile.ZipFile(context.sent[0]).namelist()
    assert {"millstream/__init__.py", "millstream/connectors/postgres/copy/staging.py"} <= set(names)
    assert all(name.endswith(".py") for name in names)
