"""When a class-data archive is used, kept and thrown away."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.spark import cds_archive
from millstream.spark.java_discovery import Java

if TYPE_CHECKING:
    from pathlib import Path


def adopted(folder: Path, name: str) -> Path:
    """An archive that was made and put into its place."""
    draft = folder / f"{name}.draft"
    draft.write_bytes(b"classes")
    cds_archive.install_archive(draft, folder / f"{name}.jsa")
    return folder / f"{name}.jsa"


def test_an_adopted_archive_is_used_and_its_sums_are_checked(tmp_path: Path) -> None:
    flags = cds_archive.jvm_flags(adopted(tmp_path, "a"))

    assert f"-XX:SharedArchiveFile={tmp_path / 'a.jsa'}" in flags
    assert "-XX:+VerifySharedSpaces" in flags


def test_an_archive_cut_short_is_not_used(tmp_path: Path) -> None:
    path = adopted(tmp_path, "a")
    path.write_bytes(b"cla")

    assert cds_archive.jvm_flags(path) == ()


def test_an_archive_that_nobody_finished_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "a.jsa").write_bytes(b"classes")

    assert cds_archive.jvm_flags(tmp_path / "a.jsa") == ()


def test_an_executor_shares_an_archive_but_no_aot_cache(tmp_path: Path) -> None:
    archive = adopted(tmp_path, "a")
    cache = archive.rename(tmp_path / "b.aot")
    (tmp_path / "b.size").write_text((tmp_path / "a.size").read_text())
    assert cds_archive.executor_flags(None) == ()
    assert cds_archive.jvm_flags(cache) != ()

    # Spark starts executors with the module jdk.incubator.vector, and a cache is for the driver's modules alone.
    assert cds_archive.executor_flags(cache) == ()
    shared = adopted(tmp_path, "c")
    assert cds_archive.executor_flags(shared) == cds_archive.jvm_flags(shared) != ()


def test_the_archives_used_last_are_kept(tmp_path: Path) -> None:
    first, second = adopted(tmp_path, "a"), adopted(tmp_path, "b")
    os.utime(first, (2, 2))
    os.utime(second, (1, 1))

    adopted(tmp_path, "c")

    assert sorted(path.name for path in tmp_path.glob("*.jsa")) == ["a.jsa", "c.jsa"]


def test_another_java_and_other_jars_have_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    monkeypatch.delenv("MILLSTREAM_ARCHIVE", raising=False)
    for build in ("17.0.1", "17.0.2"):
        (tmp_path / build).mkdir()
        (tmp_path / build / "release").write_text(f"JAVA_VERSION={build}")
    one, other = (Java(tmp_path / build, 17, "a test") for build in ("17.0.1", "17.0.2"))
    kafka, newer, jar = (tmp_path / name for name in ("kafka-1.jar", "kafka-2.jar", "spark-1.jar"))
    for path in (kafka, newer, jar):
        path.write_bytes(b"classes")
    jars = [kafka, jar]

    files = [
        cds_archive.archive_file(one, jars),
        cds_archive.archive_file(other, jars),
        cds_archive.archive_file(one, [newer, jar]),
        cds_archive.archive_file(one, jars[::-1]),
    ]

    assert len(set(files)) == 4
    assert cds_archive.archive_file(one, jars) == files[0]


def test_a_jar_that_is_replaced_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that uses an AOT cache runs the classes of the former jar, without a warning."""
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    monkeypatch.delenv("MILLSTREAM_ARCHIVE", raising=False)
    java, jar = Java(tmp_path, 25, "a test"), tmp_path / "spark-1.jar"
    jar.write_bytes(b"classes")
    os.utime(jar, (1, 1))
    first = cds_archive.archive_file(java, [jar])

    jar.write_bytes(b"CLASSES")

    assert cds_archive.archive_file(java, [jar]) != first


@pytest.mark.parametrize("is_there", [True, False])
def test_a_configuration_folder_on_the_class_path_leaves_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """`HADOOP_CONF_DIR` may name a folder that does not exist."""
    monkeypatch.delenv("MILLSTREAM_ARCHIVE", raising=False)
    folder = tmp_path if is_there else tmp_path / "missing"

    assert cds_archive.archive_file(Java(tmp_path, 25, "a test"), [folder]) is None


def test_java_25_has_an_aot_cache_that_a_second_jvm_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    monkeypatch.delenv("MILLSTREAM_ARCHIVE", raising=False)
    draft = tmp_path / "draft"

    older, newer = (cds_archive.archive_file(Java(tmp_path, version, "a test"), []) for version in (21, 25))

    assert older is not None
    assert newer is not None
    assert f"-XX:ArchiveClassesAtExit={draft}" in cds_archive.recording_flags(draft, older)
    assert cds_archive.assembly_flags(draft, older) == ()
    assert "-XX:AOTMode=record" in cds_archive.recording_flags(draft, newer)
    assert f"-XX:AOTCache={draft}" in cds_archive.assembly_flags(draft, newer)
    draft.write_bytes(b"classes")
    cds_archive.install_archive(draft, newer)
    # Java refuses to start with -Xshare and an AOT cache.
    flags = cds_archive.jvm_flags(newer)
    assert f"-XX:AOTCache={newer}" in flags
    assert not any("Xshare" in flag for flag in flags)


# In place of a trainer: it writes the byte that it receives, if any, to a file.
LISTENER = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_bytes(b'got:' + sys.stdin.buffer.read(1))"
STARTER = f"""
import sys
from millstream.spark import cds_archive
cds_archive._attach([sys.executable, "-c", {LISTENER!r}, sys.argv[1]])
sys.argv[2] == "release" and print(cds_archive.release_training())
"""


def message_to_trainer(tmp_path: Path, end: str) -> bytes:
    """Return the bytes that an attached trainer receives from a process that ends in this way."""
    fifo = tmp_path / "message"
    os.mkfifo(fifo)
    with subprocess.Popen([sys.executable, "-c", STARTER, str(fifo), end]):
        return fifo.read_bytes()


def test_a_trainer_that_is_not_released_sees_the_end_of_its_starter(tmp_path: Path) -> None:
    assert message_to_trainer(tmp_path, "leave") == b"got:"


def test_a_released_trainer_is_told_so_before_its_starter_ends(tmp_path: Path) -> None:
    assert message_to_trainer(tmp_path, "release") == b"got:" + cds_archive.RELEASE


def test_there_is_nothing_to_release_after_a_trainer_has_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(cds_archive, "_LEASES", [writing])

    assert not cds_archive.release_training()
    os.close(writing)
