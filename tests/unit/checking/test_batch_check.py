"""The order in which a check of scripts prepares its process."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from millstream.checking import batch_check
from millstream.checking.batch_check import Checker
from millstream.checking.process_confinement import Confinement
from millstream.spark import cache_folder, java_discovery, session
from millstream.spark.conditional_writes import compiled_jar
from millstream.spark.jars import jar_cache

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of a check that starts Spark, in their order; none of them is taken."""
    taken: list[str] = []

    def confine(*_args: object, **_named: object) -> Confinement:
        taken.append("confine")
        return Confinement()

    def open_session(*_args: object) -> MagicMock:
        taken.append("start")
        return MagicMock()

    monkeypatch.setattr(jar_cache, "ensure_jars", lambda group: taken.append(f"jars of {group}"))
    monkeypatch.setattr(compiled_jar, "ensure_s3_jars", lambda: taken.append("jars of s3"))
    monkeypatch.setattr(java_discovery, "find_java", lambda: taken.append("java"))
    monkeypatch.setattr(cache_folder, "create_folder", lambda _name: tmp_path)
    monkeypatch.setattr(batch_check, "confine_process", confine)
    monkeypatch.setattr(session, "open_session", open_session)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return taken


@pytest.mark.parametrize(
    ("conf", "jars"),
    [({}, ["jars of spark"]), ({"spark.hadoop.fs.s3a.endpoint": "s3"}, ["jars of spark", "jars of s3"])],
)
def test_jars_are_downloaded_before_the_network_is_cut_off(
    steps: list[str], conf: dict[str, object], jars: list[str]
) -> None:
    Checker(load=MagicMock(), confines=True, conf=conf).spark()

    assert steps == [*jars, "java", "confine", "start"]
