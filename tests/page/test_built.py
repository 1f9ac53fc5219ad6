"""The built page as files: small, of its sources, and without anything from elsewhere. Needs no browser."""

from __future__ import annotations

import gzip
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page.conftest import absent

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src/millstream/dashboard/static"
# Kilobytes as a network counts them.
MOST = 80_000


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool, working on copies of the sources and of the built page."""
    spec = importlib.util.spec_from_file_location("build_page", ROOT / "tools/build_page.py")
    assert spec is not None
    assert spec.loader is not None
    here = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(here)
    shutil.copytree(ROOT / "page", tmp_path / "page", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(STATIC, tmp_path / "static")
    monkeypatch.setattr(here, "ROOT", tmp_path)
    monkeypatch.setattr(here, "SOURCES", tmp_path / "page")
    monkeypatch.setattr(here, "BUILT", tmp_path / "static")
    return here


def test_the_page_is_under_80_kilobytes_compressed() -> None:
    files = [file for file in STATIC.rglob("*") if file.suffix in (".html", ".js", ".css")]
    size = sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)

    assert {file.suffix for file in files} == {".html", ".js", ".css"}
    assert 10_000 < size < MOST


def test_nothing_on_the_page_names_another_server() -> None:
    # Names of vocabularies of SVG and MathML, which nobody fetches.
    names = {"http://www.w3.org"}
    files = [file for file in STATIC.rglob("*") if file.is_file()]
    actual = {hit for file in files for hit in re.findall(r"https?://[\w.-]+", file.read_text())}

    assert actual - names == set()


def test_the_page_holds_no_inline_script_or_style() -> None:
    html = (STATIC / "index.html").read_text()

    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>|<style|\sstyle=|\son\w+=", html) == []


def test_nothing_is_ever_set_as_markup() -> None:
    sources = list((ROOT / "page/src").rglob("*.ts*"))
    ways = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\("
    )

    assert sources
    assert [file.name for file in sources if ways.search(file.read_text())] == []


def test_the_lock_names_no_registry() -> None:
    lock = (ROOT / "page/package-lock.json").read_text()

    assert '"integrity"' in lock
    assert '"resolved"' not in lock


def test_the_built_page_is_what_its_sources_give() -> None:
    command = [sys.executable, str(ROOT / "tools/build_page.py"), "--check"]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "the built page is what its sources give\n")


def test_a_changed_source_is_noticed(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page/src/app.tsx").write_text("// another page\n")

    assert "page/ was changed" in tool.faults(rebuild=False)[0]


def test_a_changed_result_is_noticed(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "static/index.html").write_text("<!doctype html>\n")

    assert "are not those that were built" in tool.faults(rebuild=False)[0]


def test_building_again_gives_the_same_page() -> None:
    if shutil.which("npm") is None or not (ROOT / "page/node_modules/vite").is_dir():
        absent("there is no Node here, or page/node_modules is not installed: python tools/install.py page")
    command = [sys.executable, str(ROOT / "tools/build_page.py"), "--check", "--rebuild"]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
