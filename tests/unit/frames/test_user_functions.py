"""Functions of a project whose folder is not the working directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.cloudpickle import cloudpickle

from millstream.frames.user_functions import find_function

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME, FOLDER = "rules_of_the_project", "project_of_rules"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a view and a module that it uses; the working directory is the folder `elsewhere` next to it."""
    folder = tmp_path / FOLDER
    for path in (folder, tmp_path / "elsewhere"):
        path.mkdir()
    (folder / "transforms.py").write_text(f"from {NAME} import clean\ndef view(orders):\n    return orders\n")
    (folder / f"{NAME}.py").write_text("def clean(text):\n    return text.strip()\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield folder
    if is_pickled_by_value():
        cloudpickle.unregister_pickle_by_value(sys.modules[NAME])
    sys.modules.pop(NAME, None)


def is_pickled_by_value() -> bool:
    return NAME in cloudpickle.list_registry_pickle_by_value()


@pytest.mark.parametrize("file", [f"{NAME}.py", f"{NAME}/__init__.py"])
def test_a_module_is_pickled_by_value_if_the_working_directory_has_another_of_its_name(
    project: Path, file: str
) -> None:
    other = project.parent / "elsewhere" / file
    other.parent.mkdir(exist_ok=True)
    other.write_text("def clean(text):\n    return None\n")

    for _ in range(2):
        find_function("transforms:view", project)

    assert is_pickled_by_value()


def test_a_module_of_a_function_that_a_spec_in_python_has_loaded_is_pickled_by_value_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.parent / "elsewhere" / f"{NAME}.py").touch()
    with monkeypatch.context() as patch:
        patch.syspath_prepend(project)
        clean = __import__(NAME).clean

    assert find_function(clean, project) is clean

    assert is_pickled_by_value()


@pytest.mark.parametrize("here", ["elsewhere", FOLDER, "."])
def test_a_module_is_imported_by_workers_if_they_find_no_other(
    project: Path, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.parent / here)

    find_function("transforms:view", project)

    assert NAME in sys.modules
    assert not is_pickled_by_value()


def test_a_module_of_a_package_in_the_working_directory_is_imported_by_workers(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "__init__.py").touch()
    (project / "transforms.py").write_text(f"from {FOLDER} import more_rules\ndef view(orders): ...\n")
    (project / "more_rules.py").touch()
    monkeypatch.chdir(project.parent)
    monkeypatch.syspath_prepend(project.parent)

    find_function("transforms:view", project)

    names = {name for name in sys.modules if name.partition(".")[0] == FOLDER}
    assert names == {FOLDER, f"{FOLDER}.more_rules"}
    assert names.isdisjoint(cloudpickle.list_registry_pickle_by_value())
    for name in names:
        del sys.modules[name]
