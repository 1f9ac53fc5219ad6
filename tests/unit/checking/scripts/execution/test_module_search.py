"""In which folder of a script's project a module is found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.execution.module_search import find_package_root, find_repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a script in `jobs/daily` and modules in other folders."""
    for name in ("pyproject.toml", "jobs/daily/run.py", "lib/rates.py", "shop/lib/sums.py", "venv/other.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("entry", "module", "root"),
    [
        ("", "jobs.daily", "."),
        ("", "rates", "lib"),
        ("", "other", None),
        ("", "missing", None),
        ("/Workspace/Repos/me/shop/lib", "sums", "shop/lib"),
        ("../../shop/lib", "sums", "jobs/daily/../../shop/lib"),
        ("/nowhere/at/all", "missing", None),
    ],
)
def test_a_module_is_found_in_the_folders_of_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, entry: str, module: str, root: str | None
) -> None:
    if entry:
        # A second file of this name: only the entry tells which one is meant.
        (project / "sums.d").mkdir()
        (project / "sums.d" / "sums.py").touch()
        monkeypatch.setattr(sys, "path", [*sys.path, entry])

    found = find_package_root(module, project / "jobs" / "daily" / "run.py")

    assert found == (project / root if root else None)


def test_of_two_files_with_the_name_none_is_taken(project: Path) -> None:
    (project / "sums.py.d").mkdir()
    (project / "sums.py.d" / "rates.py").touch()

    assert find_package_root("rates", project / "jobs" / "daily" / "run.py") is None


@pytest.mark.parametrize(
    ("file", "imports"),
    [
        ("stores/minio.py", "from minio import Minio"),
        ("stores/minio.py", "import minio.error"),
        ("minio/upload.py", "from minio import Minio"),
        ("minio/upload.py", "import minio"),
    ],
)
def test_a_file_that_uses_a_library_of_its_own_name_is_not_that_library(
    project: Path, file: str, imports: str
) -> None:
    (project / file).parent.mkdir()
    (project / file).write_text(f"{imports}\n", encoding="utf-8")

    assert find_package_root("minio", project / "jobs" / "daily" / "run.py") is None


@pytest.mark.parametrize(
    ("file", "imports"),
    [
        ("minio.py", "from .minio import Minio\nimport minio_client"),
        ("minio/upload.py", "from minio import upload\nfrom minio.upload import put\nimport minio.upload"),
    ],
)
def test_modules_that_import_each_other_are_found(project: Path, file: str, imports: str) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(f"{imports}\n", encoding="utf-8")

    assert find_package_root("minio", project / "jobs" / "daily" / "run.py") == project


@pytest.mark.parametrize(
    "imports",
    ["from minio import Minio", "import minio.error", "import minio\n\nstore = minio.Minio('lake:9000')"],
)
def test_a_package_that_uses_a_library_of_its_own_name_is_not_that_library(
    project: Path, imports: str
) -> None:
    (project / "minio").mkdir()
    (project / "minio" / "__init__.py").write_text("BUCKET = 'lake'\n", encoding="utf-8")
    (project / "minio" / "upload.py").write_text(f"{imports}\n", encoding="utf-8")

    assert find_package_root("minio", project / "jobs" / "daily" / "run.py") is None


@pytest.mark.parametrize(
    ("package", "imports"),
    [
        ("BUCKET = 'lake'", "from minio import BUCKET, upload"),
        ("BUCKET = 'lake'", "import minio\n\nprint(minio.BUCKET, minio.upload, minio.__file__)"),
        ("from minio.client import Minio", "from minio import Minio"),
        ("from minio.client import *", "from minio import Minio"),
        ("def __getattr__(name): return name", "from minio import Minio"),
        ("", "import minio\n\nimport minio.upload"),
    ],
)
def test_a_package_whose_files_import_it_is_found(project: Path, package: str, imports: str) -> None:
    (project / "minio").mkdir()
    (project / "minio" / "__init__.py").write_text(f"{package}\n", encoding="utf-8")
    (project / "minio" / "client.py").touch()
    (project / "minio" / "upload.py").write_text(f"{imports}\n", encoding="utf-8")

    assert find_package_root("minio", project / "jobs" / "daily" / "run.py") == project


def test_the_repository_of_a_script_is_above_the_folder_of_its_requirements(tmp_path: Path) -> None:
    (tmp_path / "spark" / "jobs").mkdir(parents=True)
    (tmp_path / "spark" / "requirements.txt").touch()
    script = tmp_path / "spark" / "jobs" / "job.py"

    assert find_repository(script) == tmp_path / "spark"

    (tmp_path / ".git").mkdir()

    assert find_repository(script) == tmp_path
