"""What `millstream doctor` says of modules that are compiled again at each start."""

from __future__ import annotations

import sys
from importlib import util
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
