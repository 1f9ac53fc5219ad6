"""Download exact jars, without their dependencies, with the Ivy that ships inside PySpark."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from millstream.diagnostics.failure import NotReady
from millstream.process.parent_death import make_parent_death_hook
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Ivy knows Maven Central by itself, so no address is needed. Without the poms a jar costs one request, not four. They
# are not needed because each dependency is named and none is resolved.
SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

# How often the progress of the download is checked, in seconds.
LOOK = 0.3


def pyspark_folder() -> Path:
    """Return the folder of the installed PySpark, found without importing it."""
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise NotReady("pyspark is not installed", "install Millstream again, which also installs PySpark")
    return Path(package.origin).parent


def user_settings() -> Path | None:
    """Return the Ivy settings for the user's mirror: MILLSTREAM_IVY_SETTINGS, else ~/.ivy2/ivysettings.xml."""
    value = os.environ.get("MILLSTREAM_IVY_SETTINGS")
    if value:
        path = Path(value).expanduser()
        if not path.is_file():
            raise NotReady(
                f"MILLSTREAM_IVY_SETTINGS names {path}, which is not a file", "correct it, or unset it"
            )
        return path
    default = Path.home() / ".ivy2" / "ivysettings.xml"
    return default if default.is_file() else None


@contextmanager
def download_jars(
    coordinates: Sequence[str], folder: Path, size: int, report: Callable[[str], None]
) -> Iterator[Path]:
    """Yield a folder inside `folder` with each jar as NAME-VERSION.jar, removed at the end.

    `size` is the total size of the jars in bytes, for the reported progress. Raises NotReady if Ivy fails.
    """
    staging = Path(tempfile.mkdtemp(prefix="fetching-", dir=folder))
    try:
        _run_ivy(coordinates, staging, size, report)
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _run_ivy(coordinates: Sequence[str], staging: Path, size: int, report: Callable[[str], None]) -> None:
    settings = user_settings()
    if settings is None:
        settings = staging / "settings.xml"
        settings.write_text(SETTINGS)
    ivy_file = staging / "wanted.xml"
    ivy_file.write_text(_ivy_module(coordinates))
    ivy = next((pyspark_folder() / "jars").glob("ivy-*.jar"))
    command: list[str | Path] = [
        find_java().binary, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", ivy, "org.apache.ivy.Main",
        "-settings", settings, "-cache", staging / "cache", "-ivy", ivy_file,
        "-retrieve", f"{staging}/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    with (staging / "log").open("w+") as log:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=make_parent_death_hook(signal.SIGKILL),
        ) as process:
            _report_progress(process, staging / "cache", len(coordinates), size, report)
        if process.returncode != 0:
            log.seek(0)
            raise NotReady(_summarize_failure(coordinates, log.read()), _suggest_fix(settings, staging))


def _report_progress(
    process: subprocess.Popen[bytes], cache: Path, count: int, size: int, report: Callable[[str], None]
) -> None:
    """Report how much has arrived until Ivy ends. If the caller is interrupted, Ivy is killed."""
    try:
        while True:
            report(f"fetching {count} jars: {_size_of_jars(cache) / 1e6:.0f} of {size / 1e6:.0f} MB")
            try:
                process.wait(LOOK)
            except subprocess.TimeoutExpired:
                continue
            return
    finally:
        if process.poll() is None:
            process.kill()


def _size_of_jars(folder: Path) -> int:
    """Return the bytes of all jars in the folder, including unfinished ones."""
    total = 0
    for path in folder.rglob("*.jar*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # renamed after it was listed
            continue
    return total


def _ivy_module(coordinates: Sequence[str]) -> str:
    lines = []
    for coordinate in coordinates:
        organisation, name, version = coordinate.split(":")
        lines.append(
            f"<dependency org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(version)}"
            f' transitive="false"><artifact name={quoteattr(name)} type="jar" ext="jar"/></dependency>'
        )
    body = "\n".join(lines)
    return (
        '<ivy-module version="2.0"><info organisation="millstream" module="jars"/>\n'
        f"<dependencies>\n{body}\n</dependencies></ivy-module>\n"
    )


def _summarize_failure(coordinates: Sequence[str], log: str) -> str:
    """Summarise Ivy's long log in one sentence."""
    first = coordinates[0].split(":")[1]
    others = len(coordinates) - 1
    subject = f"{first} and {others} more jars are" if others else f"{first} is"
    for pattern, meaning in (
        ("UnknownHostException", "the repository's host is not known here (no network?)"),
        ("Host", "the repository's host cannot be reached (no network?)"),
        ("ConnectException", "the repository refused the connection"),
        ("SSLHandshakeException", "the repository's certificate is not trusted by this Java"),
        ("not found", "the repository does not have it"),
    ):
        if pattern in log:
            return f"{subject} not in the cache and could not be fetched: {meaning}"
    return f"{subject} not in the cache and could not be fetched"


def _suggest_fix(settings: Path, staging: Path) -> str:
    if settings.parent != staging:
        return f"look at the mirror that {settings} names"
    return (
        "fetch them once with a network ('millstream jars fetch'), or name a mirror's Ivy settings"
        " in MILLSTREAM_IVY_SETTINGS"
    )
