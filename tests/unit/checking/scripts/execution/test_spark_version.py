"""The version of Spark that a script is written for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checking.scripts.execution.spark_version import find_spark_version

if TYPE_CHECKING:
    from pathlib import Path


def test_a_release_of_emr_tells_the_version(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "README.md").write_text("Runs on emr-7.1.0, with all of Spark.\n")

    version = find_spark_version(tmp_path / "jobs" / "job.py", "")

    assert version is not None
    assert (version.number, version.file, version.has_ansi_mode) == ("3", "README.md", False)
