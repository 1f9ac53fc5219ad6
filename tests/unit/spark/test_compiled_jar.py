"""The jar that is compiled on the machine: once for each version of its sources, by Spark's own compiler."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.spark.conditional_writes import compiled_jar
from millstream.spark.jars import jar_cache

pytestmark = pytest.mark.slow

FOLDER = Path(compiled_jar.__file__).parent


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes without libraries, of which the second uses the first, in place of those for S3."""
    shutil.copy(FOLDER / "JarCompiler.java", tmp_path)
    (tmp_path / "First.java").write_text("package a; public class First { public int f() { return 1; } }")
    (tmp_path / "Second.java").write_text("package a; public class Second extends First {}")
    monkeypatch.setattr(compiled_jar, "_FOLDER", tmp_path)
    monkeypatch.setattr(compiled_jar, "SOURCES", ("First.java", "Second.java"))
    monkeypatch.setattr(jar_cache, "ensure_jars", lambda _: [])
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MILLSTREAM_JARS", raising=False)
    return tmp_path


def test_a_jar_is_compiled_once_and_again_when_a_source_has_changed(sources: Path) -> None:
    first = compiled_jar.ensure_compiled_jar()
    written = first.stat().st_mtime_ns
    again = compiled_jar.ensure_compiled_jar()
    (sources / "Second.java").write_text("package a; public class Second {}")
    changed = compiled_jar.ensure_compiled_jar()

    assert zipfile.ZipFile(first).namelist() == ["a/First.class", "a/Second.class"]
    assert (again, again.stat().st_mtime_ns) == (first, written)
    assert changed != first
    assert zipfile.ZipFile(changed).read("a/Second.class") != zipfile.ZipFile(first).read("a/Second.class")
    assert sorted(path.name for path in first.parent.iterdir()) == sorted([first.name, changed.name])


def test_the_jar_of_a_package_is_used_where_it_is(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = compiled_jar.ensure_compiled_jar()
    packaged = sources / "jars" / jar.name
    packaged.parent.mkdir()
    jar.rename(packaged)
    monkeypatch.setenv("MILLSTREAM_JARS", str(packaged.parent))

    assert compiled_jar.ensure_compiled_jar() == packaged
    assert not jar.exists()


def test_a_source_that_does_not_compile_is_one_sentence_and_leaves_nothing(sources: Path) -> None:
    (sources / "Second.java").write_text("package a; public class Second extends Missing {}")

    with pytest.raises(NotReady, match=r"the classes for S3 cannot be compiled: .*Missing"):
        compiled_jar.ensure_compiled_jar()

    assert list((sources / "home" / "jars").iterdir()) == []
