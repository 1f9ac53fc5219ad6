"""The jars' lock and cache; Ivy is replaced by a folder of prepared files."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.spark.jars import ivy_download, jar_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

GOOD = b"the locked bytes"
JAR = jar_cache.Jar("org.example:thing:1.0", len(GOOD), hashlib.sha256(GOOD).hexdigest())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one jar and an empty cache."""
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    monkeypatch.setattr(jar_cache, "locked_jars", lambda: {"spark": (JAR,)})
    return tmp_path / "jars"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the repository gives, one entry a fetch; what was given is taken off."""
    gives: list[bytes] = []

    @contextmanager
    def fetched(
        coordinates: Sequence[str], folder: Path, size: int, tell: Callable[[str], None]
    ) -> Iterator[Path]:
        assert (list(coordinates), size) == ([JAR.at], JAR.size)
        tell("fetching")
        staged = folder / "staged"
        staged.mkdir(exist_ok=True)
        (staged / JAR.file).write_bytes(gives.pop(0))
        yield staged

    monkeypatch.setattr(ivy_download, "download_jars", fetched)
    return gives


def test_the_lock_is_sorted_and_each_jar_has_a_sum_and_a_size() -> None:
    for group, entries in jar_cache.locked_jars().items():
        names = [jar.at for jar in entries]
        assert names == sorted(names), group
        assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in entries), group


def test_the_pages_have_the_numbers_of_jars() -> None:
    jars = jar_cache.locked_jars()
    mirror, cluster = (
        " ".join(Path("docs/how-to", page).read_text(encoding="utf-8").split())
        for page in ("mirror.md", "cluster.md")
    )

    assert len(jars["spark"]) == 12
    assert "Spark needs twelve jars" in mirror
    assert f"the local broker needs {len(jars['broker'])} more" in mirror
    megabytes = sum(jar.size for jar in jars["s3-server"]) / 1e6
    assert f"the server's {len(jars['s3-server'])} jars of {megabytes:.0f} MB" in cluster


def test_the_lock_holds_what_its_tool_names() -> None:
    text = Path("tools/lock_jars.py").read_text()
    for jar in (jar for entries in jar_cache.locked_jars().values() for jar in entries):
        _, name, _ = jar.at.split(":")
        assert name in text or name.rpartition("-")[2] in text


def test_a_fetched_jar_is_not_fetched_again(cache: Path, repository: list[bytes]) -> None:
    repository.append(GOOD)

    first, second = jar_cache.ensure_jars("spark"), jar_cache.ensure_jars("spark")

    assert first == second == [cache / "thing-1.0.jar"]


def test_a_flipped_byte_from_the_repository_is_refused(cache: Path, repository: list[bytes]) -> None:
    repository.append(b"The locked bytes")

    with pytest.raises(
        NotReady,
        match=r"thing-1\.0\.jar is refused: the repository returned a file with "
        "the SHA-256 checksum",
    ):
        jar_cache.ensure_jars("spark")

    assert not (cache / "thing-1.0.jar").exists()


def test_a_flipped_byte_in_the_cache_is_said_and_fetched_again(cache: Path, repository: list[bytes]) -> None:
    repository += [GOOD, GOOD]
    jar_cache.ensure_jars("spark")
    (cache / "thing-1.0.jar").write_bytes(b"the locked bytEs")
    messages: list[str] = []

    jar_cache.ensure_jars("spark", messages.append)

    assert messages == [
        "thing-1.0.jar in the cache is not the locked one: it is refused and fetched again",
        "fetching",
    ]
    assert (cache / "thing-1.0.jar").read_bytes() == GOOD


def test_a_byte_flipped_behind_the_stamp_is_found_by_verify(cache: Path, repository: list[bytes]) -> None:
    repository += [GOOD, GOOD]
    jar_cache.ensure_jars("spark")
    jar = cache / "thing-1.0.jar"
    jar.write_bytes(b"the locked bytEs")
    visited = jar.stat()
    stamp = {"thing-1.0.jar": [JAR.sha256, visited.st_size, visited.st_mtime_ns]}
    (cache / "verified.json").write_text(json.dumps(stamp))

    jar_cache.ensure_jars("spark", verify=True)

    assert jar.read_bytes() == GOOD


def test_a_jar_copied_into_the_cache_needs_no_network(cache: Path, repository: list[bytes]) -> None:
    cache.mkdir(parents=True)
    (cache / "thing-1.0.jar").write_bytes(GOOD)

    assert jar_cache.ensure_jars("spark") == [cache / "thing-1.0.jar"]
    assert repository == []


def test_a_repository_that_cannot_be_reached_is_one_sentence_and_a_cure(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = tmp_path / "settings.xml"
    unreachable.write_text(
        '<ivysettings><settings defaultResolver="m"/><resolvers>'
        '<ibiblio name="m" m2compatible="true" usepoms="false" root="http://127.0.0.1:1/"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("MILLSTREAM_IVY_SETTINGS", str(unreachable))

    with pytest.raises(NotReady, match="thing is not in the cache and could not be fetched") as lacking:
        jar_cache.ensure_jars("spark")

    assert str(unreachable) in lacking.value.fix
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_settings_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_IVY_SETTINGS", "nowhere.xml")

    with pytest.raises(NotReady, match=r"MILLSTREAM_IVY_SETTINGS names nowhere\.xml"):
        ivy_download.user_settings()


def test_jars_of_a_package_are_used_where_they_are_and_their_folder_is_only_read(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = tmp_path / "unpacked" / "jars"
    packaged.mkdir(parents=True)
    (packaged / JAR.file).write_bytes(GOOD)
    packaged.chmod(0o500)
    monkeypatch.setenv("MILLSTREAM_JARS", str(packaged))

    assert jar_cache.is_cached("spark")
    assert jar_cache.ensure_jars("spark") == [packaged / JAR.file]
    assert (
        jar_cache.ensure_jars("spark", verify=True) == jar_cache.jar_paths("spark") == [packaged / JAR.file]
    )
    assert [path.name for path in packaged.iterdir()] == [JAR.file]
    assert not cache.exists()


def test_a_jar_of_a_package_that_is_not_the_locked_one_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = tmp_path / "unpacked"
    packaged.mkdir()
    (packaged / JAR.file).write_bytes(GOOD[:-1] + b"!")
    monkeypatch.setenv("MILLSTREAM_JARS", str(packaged))

    with pytest.raises(NotReady, match="its checksum is not the expected one"):
        jar_cache.ensure_jars("spark")
    assert not cache.exists()


def test_a_package_without_some_of_the_jars_is_said(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = jar_cache.Jar("org.example:other:1.0", len(GOOD), JAR.sha256)
    monkeypatch.setattr(jar_cache, "locked_jars", lambda: {"spark": (JAR, other)})
    packaged = tmp_path / "part"
    packaged.mkdir()
    (packaged / JAR.file).write_bytes(GOOD)
    monkeypatch.setenv("MILLSTREAM_JARS", str(packaged))

    with pytest.raises(NotReady, match=r"other-1\.0\.jar is not in"):
        jar_cache.ensure_jars("spark")
    assert not cache.exists()
