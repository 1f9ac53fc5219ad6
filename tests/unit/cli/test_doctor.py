"""What `millstream doctor` says of packages, and of modules that are compiled again at each start."""

from __future__ import annotations

import sys
from importlib import metadata, util
from pathlib import Path
from types import SimpleNamespace

import pytest

from millstream.cli import doctor


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the compiled form of a module of an installed PySpark would be."""
    module = tmp_path / "pyspark" / "sql" / "session.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr(
        util, "find_spec", lambda _: SimpleNamespace(origin=str(tmp_path / "pyspark/__init__.py"))
    )
    return Path(util.cache_from_source(str(module)))


def compiled_modules() -> doctor.EnvironmentCheck:
    """The check of compiled modules among all."""
    (check,) = (check for check in doctor.examine() if check.what == "compiled modules")
    return check


def test_modules_that_no_start_can_store_are_told(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    check = compiled_modules()

    assert (check.state, compiled.exists()) == ("note", False)
    assert "PYTHONDONTWRITEBYTECODE is set" in check.found
    assert check.fix == f"{sys.executable} -m compileall -q {tmp_path}"


def test_stored_modules_are_fine_whatever_is_set(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiled.parent.mkdir()
    compiled.touch()

    assert compiled_modules().state == "ok"


def test_the_first_start_stores_modules(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    assert (compiled_modules().state, compiled.exists()) == ("ok", False)


@pytest.mark.parametrize(
    ("requirement", "version", "state"),
    [
        ("pyspark==4.2.0", "4.2.0", "ok"),
        ("pyspark==4.2.0", "4.1.1", "missing"),
        ("pandas<3,>=2.2", "2.3.1", "ok"),
        ("pandas<3,>=2.2", "2.2", "ok"),
        ("pandas<3,>=2.2", "3.0.0rc1", "missing"),
        ("pandas<3,>=2.2", "2.1.4", "missing"),
        ("psycopg[binary]>=3.2", "3.2.0", "ok"),
    ],
)
def test_a_package_has_a_version_that_millstream_needs(
    requirement: str, version: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: [requirement])
    monkeypatch.setattr(metadata, "version", lambda _: version)

    (check,) = doctor._packages()

    assert check.state == state
    assert check.fix == ("" if state == "ok" else f"pip install '{requirement}'")
