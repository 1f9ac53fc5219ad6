"""Find the version of Spark that a script is written for, in its text and in the files of its project."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from millstream.checking.scripts.execution.module_search import find_project_root, list_project_folders
from millstream.checking.scripts.interception.recording import Doubt
from millstream.checking.scripts.local_files import keep_project_folders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from millstream.diagnostics.finding import Span

ANSI = "spark.sql.ansi.enabled"

_VERSION = r"([234](?:\.\d+)+)"
# The folder of a release of Spark, as in the path of `findspark.init` or in a download.
_DISTRIBUTION = re.compile(rf"(?i)\bspark-{_VERSION}-bin")
_COMMENT = re.compile(rf"(?i)#.*\b(?:py)?spark[ =v]*{_VERSION}")
# The version that brought a method, in its docstring.
_ADDED = re.compile(r"\.\. versionadded:: (\d+(?:\.\d+)+)")
# A connector of Spark has Spark's own version. Delta's package got the number of Spark's major version with 3.0.
_IN_SCRIPT = (
    re.compile(rf"org\.apache\.spark:[\w.-]+?:{_VERSION}"),
    re.compile(rf"io\.delta:delta-spark_[\d._]+:{_VERSION}"),
    re.compile(r"spark-(?:sql-kafka|streaming-kafka|avro|streaming-kinesis)[\w.-]*?[-:/]([234](?:\.\d+)+)"),
    _DISTRIBUTION,
    _COMMENT,
)
# Packages that only Spark 3 can load, and AWS Glue, which has Spark 3 in each of its versions until 5.1.
_ONLY_3 = re.compile(r"io\.delta:delta-core_|^\s*(?:from|import)\s+awsglue\b", re.MULTILINE)
# How a session introduces itself in the output of a notebook.
_OUTPUT = re.compile(rf"<code>v{_VERSION}</code>|(?i:\bspark version\s*:?\s*{_VERSION})")
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
_FROM_4 = re.compile(r"(?i)\bpyspark(?:\[[\w, -]*\])?[\"']?\s*(?:[=:]\s*[\"'])?>=\s*4\b")
# Releases of Amazon EMR and runtimes of Databricks with Spark 3.
_MANAGED = re.compile(r"\bemr-[67]\.\d+|\b(?:[7-9]|1[0-6])\.\d+\.x-(?:[a-z\d]+-)*scala2")
# What a description says, such as "Apache Spark 3.x" or a badge "Spark-3.5.1", if a later version may not do as well.
_PROSE = re.compile(
    r"(?i)\b(?:py)?spark(?:[ -](?:structured[ -])?streaming)?(?:™|\*\*|`|\])*[ -](?:v|version )?"
    r"([23]\.(?:x|\d+(?:\.\d+)*))(?![\d.]*(?:\+|,? (?:\()?(?:or|and) ))"
)
_FILES = (
    "requirements*.txt", "requirements/*.txt", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile",
    "environment.y*ml", "Dockerfile*", "docker-compose*.y*ml", "compose*.y*ml",
    "docker/Dockerfile*", "docker/*compose*.y*ml", "Makefile", "*.sh", "scripts/*.sh", "README.md",
)  # fmt: skip
# Files anywhere in a project that name the version with which its scripts run.
_NAMES = (*(name for name in _FILES if "/" not in name), "*.py", "*.ipynb", "databricks.y*ml", "*job*.y*ml")
_MOST_BYTES = 200_000
_MOST_BYTES_OF_NOTEBOOK = 2_000_000
# The number of files of a project that are read at most.
_MOST_FILES = 400


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

    def is_before(self, other: str) -> bool:
        """Return whether this is surely an earlier version than another one."""
        own, later = ([int(part) for part in number.split(".")[:2]] for number in (self.number, other))
        return own < later[: len(own)]


def find_spark_version(script: Path, text: str) -> SparkVersion | None:
    """Return the version that a script names in its packages and comments, else the one of its project's files.

    A file that tells how the project is installed comes before its other scripts, and a nearer folder before one
    that is further up. Other scripts tell it only if all of them that name a version are for the same one.
    """
    for pattern in _IN_SCRIPT:
        if match := pattern.search(text):
            return SparkVersion(match[1], script.name)
    if _ONLY_3.search(text):
        return SparkVersion("3", script.name)
    if script.suffix == ".ipynb" and (number := _version_in(script)) is not None:
        return SparkVersion(number, script.name)
    folders = list_project_folders(script)
    for folder in folders:
        for file in sorted(path for name in _FILES for path in folder.glob(name) if path.is_file()):
            if (number := _version_in(file)) is not None:
                return SparkVersion(number, file.name)
    is_project = find_project_root(script) is not None
    folders = folders if is_project else folders[:1]
    for folder in folders:
        named = {
            file: number
            for file in _list_files(folder, is_deep=is_project)
            if (number := _version_in(file)) is not None
        }
        if named:
            file, number = min(named.items())
            is_same = len({each.partition(".")[0] for each in named.values()}) == 1
            return SparkVersion(number, file.name) if is_same else None
    for folder in folders:
        for file in sorted(folder.glob("README*")):
            if match := _PROSE.search(_read(file)):
                return SparkVersion(match[1].partition(".x")[0], file.name)
    return None


def find_former_name(error: BaseException, version: SparkVersion | None, span: Span | None) -> Doubt | None:
    """Return the doubt about a column whose generated name was another one in the Spark that a script is for.

    Until 3.0, `first(price)` was `first(price, false)`, and the cast of `data.price` was `price`.
    """
    if (
        version is None
        or not version.number.startswith(("2.", "3.0"))
        or not isinstance(error, PySparkException)
    ):
        return None
    proposal = str((error.getMessageParameters() or {}).get("proposal", ""))
    if "UNRESOLVED_COLUMN" not in str(error.getCondition()) or "(" not in proposal:
        return None
    reason = (
        f"the script is for Spark {version.number}, which gives computed columns other names than Spark 4"
    )
    return Doubt("a column", reason, span, f"name the column with alias; Spark 4 has {proposal}")


def find_later_method(
    error: BaseException, library: list[FrameType], version: SparkVersion | None, span: Span | None
) -> Doubt | None:
    """Return the doubt about a column, `df.offset`, that is a method in a later Spark than the script is for."""
    if version is None or not isinstance(error, PySparkException):
        return None
    methods = [
        value.__name__
        for frame in library
        for value in frame.f_locals.values()
        if type(value) is MethodType and isinstance(value.__self__, DataFrame)
    ]
    for name in methods:
        added = _ADDED.search(getattr(DataFrame, name, None).__doc__ or "")
        if added is not None and version.is_before(added[1]):
            method = f"a DataFrame has a method '{name}' from Spark {added[1]}"
            reason = f"the script is for Spark {version.number}, and {method}"
            return Doubt(f"column '{name}'", reason, span, f"write col('{name}')")
    return None


def _list_files(root: Path, *, is_deep: bool) -> Iterator[Path]:
    """Yield the files of a folder, and of those below it, that may name a version."""
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = keep_project_folders(folders) if is_deep else []
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in _NAMES):
                count += 1
                if count > _MOST_FILES:
                    return
                yield Path(folder, name)


def _version_in(file: Path) -> str | None:
    text = _read(file)
    patterns = (*_IN_PROJECT, _COMMENT) if file.suffix in (".py", ".ipynb") else _IN_PROJECT
    number = next((match[1] for pattern in patterns if (match := pattern.search(text))), None)
    if number is None and file.suffix == ".ipynb" and (output := _OUTPUT.search(text)):
        number = output[1] or output[2]
    if number is None and _FROM_4.search(text):
        number = "4"
    is_old = any(pattern.search(text) for pattern in (_BELOW_4, _MANAGED, _ONLY_3))
    return number or ("3" if is_old else None)


def _read(file: Path) -> str:
    """Return the text of a file, or "" if it is too long for one that names a version."""
    most = _MOST_BYTES_OF_NOTEBOOK if file.suffix == ".ipynb" else _MOST_BYTES
    try:
        return "" if file.stat().st_size > most else file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
