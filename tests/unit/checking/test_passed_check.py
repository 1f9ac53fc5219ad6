"""When the result of an earlier check is used again."""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking import passed_check
from millstream.checking.passed_check import FILE, PassedCheck, compute_fingerprint, recall, remember
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.pipeline.spec_file import LoadedSpec

EXAMPLE = Path(__file__).parents[3] / "examples" / "ecommerce"
PASSED = PassedCheck({"findings": [], "plans": []}, [{"query": "funnel"}])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "shop", ignore=shutil.ignore_patterns(".millstream", "lake"))
    (tmp_path / "shop" / ".millstream").mkdir()
    return tmp_path / "shop"


def loaded(folder: Path, **env: str) -> LoadedSpec:
    return load_spec(folder / "pipeline.yml", env)


def test_the_same_spec_with_the_same_files_has_passed(folder: Path) -> None:
    assert recall(loaded(folder)) is None
    remember(loaded(folder), PASSED)
    assert recall(loaded(folder)) == PASSED
    assert (folder / FILE).stat().st_mode & 0o077 == 0


def _edit_sql(folder: Path) -> None:
    sql = folder / "views" / "funnel.sql"
    sql.write_text(sql.read_text().replace("15 minutes", "14 minutes"))


def _edit_spec(folder: Path) -> None:
    spec = folder / "pipeline.yml"
    spec.write_text(spec.read_text() + "\n# more\n")


def _replace_catalog(folder: Path) -> None:
    (file,) = (folder / "data" / "product_catalog").glob("*.parquet")
    os.utime(file, (1, 1))


def _add_catalog(folder: Path) -> None:
    shutil.copy(EXAMPLE / "README.md", folder / "data" / "product_catalog" / "more.parquet")


def _damage(folder: Path) -> None:
    (folder / FILE).write_text('{"fingerprint": ')


def _shorten(folder: Path) -> None:
    record = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps({"fingerprint": record["fingerprint"]}))


@pytest.mark.parametrize(
    "change",
    [_edit_sql, _edit_spec, _replace_catalog, _add_catalog, _damage, _shorten],
    ids=lambda one: one.__name__,
)
def test_any_change_needs_a_check(folder: Path, change: Callable[[Path], None]) -> None:
    remember(loaded(folder), PASSED)
    change(folder)
    assert recall(loaded(folder)) is None


def test_another_value_of_a_variable_needs_a_check(folder: Path) -> None:
    remember(loaded(folder, LAKE="a"), PASSED)
    assert recall(loaded(folder, LAKE="b")) is None


def test_another_version_needs_a_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(loaded(folder), PASSED)
    monkeypatch.setattr(passed_check, "version", lambda _: "4.3.0")
    assert recall(loaded(folder)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("parquet: data/product_catalog", "delta: s3://shop/catalog"),
        ("parquet: data/product_catalog", "parquet: nowhere"),
        ("    format: json\n", "    format: avro\n"),
        ("      - delta: {path", "      - foreach_batch: shop:send\n      - delta: {path"),
    ],
)
def test_what_a_check_may_read_elsewhere_is_checked_each_time(folder: Path, old: str, new: str) -> None:
    spec = folder / "pipeline.yml"
    assert old in spec.read_text()
    spec.write_text(spec.read_text().replace(old, new))
    assert compute_fingerprint(loaded(folder)) is None


def test_the_code_of_an_unpacked_package_needs_no_installed_millstream(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "millstream":
            raise PackageNotFoundError(name)
        return "4.2.0"

    monkeypatch.setattr(passed_check, "version", version)

    remember(loaded(folder), PASSED)
    assert recall(loaded(folder)) == PASSED


def test_a_folder_that_cannot_be_written_keeps_nothing(folder: Path) -> None:
    shutil.rmtree(folder / ".millstream")
    remember(loaded(folder), PASSED)
    assert recall(loaded(folder)) is None
