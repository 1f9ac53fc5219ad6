"""Find the version of Spark that a script is written for, in its text and in the files of its project."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checking.scripts.execution.module_search import list_project_folders

if TYPE_CHECKING:
    from pathlib import Path

ANSI = "spark.sql.ansi.enabled"

_VERSION = r"([234](?:\.\d+)+)"
# The folder of a release of Spark, as in the path of `findspark.init` or in a download.
_DISTRIBUTION = re.compile(rf"(?i)\bspark-{_VERSION}-bin")
# A connector of Spark has Spark's own version. Delta's package got the number of Spark's major version with 3.0.
_IN_SCRIPT = (
    re.compile(rf"org\.apache\.spark:[\w.-]+?:{_VERSION}"),
    re.compile(rf"io\.delta:delta-spark_[\d._]+:{_VERSION}"),
    re.compile(r"spark-(?:sql-kafka|streaming-kafka|avro|streaming-kinesis)[\w.-]*?[-:]([234](?:\.\d+)+)"),
    _DISTRIBUTION,
    re.compile(rf"(?i)#.*\b(?:py)?spark[ =v]*{_VERSION}"),
)
# Old packages that only an old Spark can load.
_OLD_DELTA = re.compile(r"io\.delta:delta-core_")
_IN_PROJECT = (
    re.compile(rf"(?i)\bpyspark(?:\[[\w, -]*\])?[\"']?\s*(?:==|~=|=|:)\s*[\"'^~=]*{_VERSION}"),
    re.compile(rf"(?i)\bspark(?:-py|-master|-worker)?:(?:v)?{_VERSION}"),
    re.compile(rf"(?i)\bspark_version\s*[=:]\s*[\"']?{_VERSION}"),
    *_IN_SCRIPT[:4],
)
# A range that ends before Spark 4.
_BELOW_4 = re.compile(
    r"(?i)\bpyspark(?:\[[\w, -]*\])?[\"']?\s*(?:[=:]\s*[\"'])?[>~=!\d., ]*<\s*4(?:\.0)*(?![\d.])"
)
# Releases of Amazon EMR with Spark 3.
_EMR = re.compile(r"\bemr-[67]\.\d+")
_FILES = (
    "requirements*.txt", "requirements/*.txt", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile",
    "environment.y*ml", "Dockerfile*", "docker-compose*.y*ml", "compose*.y*ml",
    "docker/Dockerfile*", "docker/*compose*.y*ml", "Makefile", "*.sh", "scripts/*.sh", "README.md",
)  # fmt: skip
_MOST_BYTES = 200_000


@dataclass(frozen=True)
class SparkVersion:
    """A version of Spark, and the file that names it."""

    number: str
    """Such as 3.5.1, or 3 if only the major version is known."""
    file: str

    @property
    def has_ansi_mode(self) -> bool:
        """True if a failed cast fails the query by default, as from Spark 4."""
        return int(self.number.partition(".")[0]) >= 4


def find_spark_version(script: Path, text: str) -> SparkVersion | None:
    """Return the version that a script names in its packages and comments, else the one of its project's files."""
    for pattern in _IN_SCRIPT:
        if match := pattern.search(text):
            return SparkVersion(match[1], script.name)
    if _OLD_DELTA.search(text):
        return SparkVersion("3", script.name)
    for folder in list_project_folders(script):
        for file in sorted(path for name in _FILES for path in folder.glob(name) if path.is_file()):
            if (number := _version_in(file)) is not None:
                return SparkVersion(number, file.name)
    return None


def _version_in(file: Path) -> str | None:
    try:
        if file.stat().st_size > _MOST_BYTES:
            return None
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    number = next((match[1] for pattern in _IN_PROJECT if (match := pattern.search(text))), None)
    return number or ("3" if _BELOW_4.search(text) or _EMR.search(text) else None)
