"""A training in the background: it outlives its starter, gives way to a command, and leaves nothing half-made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from millstream.spark import cache_folder, cds_archive, session
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# An idle machine takes half a minute for a training, and twice that on Java 25.
WITHIN = 900

pytestmark = pytest.mark.timeout(1000)


# Starts Spark as a command does, and prints which archive its JVM was started with.
USE = """
import sys
from millstream.spark import session

logged = f"-Xlog:class+load:file={sys.argv[1]}"
session.open_session("test", {"spark.driver.extraJavaOptions": logged})
print(next(setting.value for setting in session.applied_settings() if setting.key == "(class-data archive)"))
"""


class Training:
    """An attached trainer of an archive in its own cache, with the pipe of its starter."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "archives"
        self.target = session.archive_path()
        assert self.target is not None
        assert self.target.parent == self.folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "millstream.spark.cds_training", str(self.target), "--attached"],
            stdin=subprocess.PIPE,
        )

    def release(self) -> None:
        """Do what the process does that has started a trainer and has no more work."""
        assert self.process.stdin is not None
        self.process.stdin.write(cds_archive.RELEASE)
        self.process.stdin.close()

    def await_jvm(self) -> None:
        """Wait until the JVM of the training runs: it writes this log."""
        pause = threading.Event()
        while not (self.folder / "train.log").is_file() and self.process.poll() is None:
            pause.wait(0.05)
        assert self.process.poll() is None

    def files(self) -> set[str]:
        """What is in the folder of archives, but for the log."""
        return {path.name for path in self.folder.iterdir()} - {"train.log", "last_start"}


@pytest.fixture
def java() -> str:
    """Where the Java of the training comes from: "wheel" for Java 25, which has AOT caches."""
    return ""


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: str) -> Iterator[Training]:
    jars = cache_folder.create_folder("jars")
    monkeypatch.setenv("MILLSTREAM_JAVA", java)
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    (tmp_path / "jars").symlink_to(jars)
    item = Training(tmp_path)
    yield item
    item.process.kill()
    item.process.wait()


@pytest.mark.whole
@pytest.mark.parametrize("java", ["", "wheel"])
def test_a_released_training_ends_with_an_archive_that_the_next_jvm_uses(
    training: Training, java: str
) -> None:
    training.release()

    assert training.process.wait(WITHIN) == 0
    assert training.target is not None
    assert training.files() == {training.target.name, training.target.with_suffix(".size").name}
    assert training.target.suffix == (".aot" if java == "wheel" else ".jsa")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(training.folder / "classes")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(training.target)]
    loaded = (training.folder / "classes").read_text()
    assert "org.apache.spark.SparkContext source: shared objects file" in loaded


def test_a_command_that_starts_ends_the_training_without_a_trace(training: Training) -> None:
    training.release()
    training.await_jvm()

    cds_archive.announce_start()

    assert training.process.wait(WITHIN) == 1
    assert training.files() == set()


def test_a_training_that_is_asked_to_end_leaves_nothing(training: Training) -> None:
    training.release()
    training.await_jvm()

    training.process.send_signal(signal.SIGTERM)

    assert training.process.wait(WITHIN) == 1
    assert training.files() == set()


def test_a_killed_training_leaves_nothing_that_a_jvm_would_use(training: Training) -> None:
    training.release()
    training.await_jvm()

    training.process.kill()
    training.process.wait()

    assert cds_archive.jvm_flags(training.target) == ()


MAIN = "org.postgresql.util.PGJDBCMain"


def load_from_archive(jar: Path, *flags: str) -> bool:
    """Return whether a JVM with this class path takes a class of the jar from an archive."""
    command = [str(find_java().binary), *flags, "-Xlog:class+load", "-cp", str(jar), MAIN]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stderr  # what that class returns without arguments
    (line,) = [line for line in done.stdout.splitlines() if f"{MAIN} source:" in line]
    return "shared objects file" in line


def test_java_25_uses_an_aot_cache_that_it_has_recorded_and_assembled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options are those of a training. Java ends at once if it does not accept one of them."""
    monkeypatch.setenv("MILLSTREAM_JAVA", "wheel")
    (source,) = cache_folder.create_folder("jars").rglob("postgresql-*.jar")
    jar = tmp_path / "one.jar"
    jar.write_bytes(source.read_bytes())
    archive, draft = tmp_path / "a.aot", tmp_path / "draft"
    assert not load_from_archive(jar, *cds_archive.recording_flags(draft, archive))
    create = [str(find_java().binary), *cds_archive.assembly_flags(draft, archive), "-cp", str(jar)]
    subprocess.run(create, check=True, capture_output=True, env={**os.environ, "JDK_JAVA_OPTIONS": ""})
    cds_archive.install_archive(draft, archive)
    flags = cds_archive.jvm_flags(archive)

    assert load_from_archive(jar, *flags)


def test_a_jvm_with_other_jars_ignores_an_archive(tmp_path: Path) -> None:
    (source,) = cache_folder.create_folder("jars").rglob("postgresql-*.jar")
    jar, other = tmp_path / "one.jar", tmp_path / "two.jar"
    for path in (jar, other):
        path.write_bytes(source.read_bytes())
    archive = tmp_path / "a.jsa"
    assert not load_from_archive(jar, f"-XX:ArchiveClassesAtExit={archive}")
    cds_archive.install_archive(archive.rename(tmp_path / "draft"), archive)
    flags = cds_archive.jvm_flags(archive)

    assert load_from_archive(jar, *flags)
    assert not load_from_archive(other, *flags)
