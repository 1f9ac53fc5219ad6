"""Fetch exact jars, and nothing they depend on, with the Ivy that ships inside PySpark."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from millstream.diagnostics.failure import NotReady
from millstream.runtime.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Ivy knows Maven Central by itself, so no address stands here. Without the poms (each dependency is
# named, none is resolved) a jar costs one request, not four.
SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

# How often the growing download is looked at, in seconds.
LOOK = 0.3


def pyspark_folder() -> Path:
    """The folder of the installed PySpark, found without importing it."""
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise NotReady("pyspark is not installed", "install millstream again: pip install millstream")
    return Path(package.origin).parent


def settings_of_user() -> Path | None:
    """The Ivy settings that name the user's mirror: MILLSTREAM_IVY_SETTINGS, else ~/.ivy2/ivysettings.xml."""
    given = os.environ.get("MILLSTREAM_IVY_SETTINGS")
    if given:
        path = Path(given).expanduser()
        if not path.is_file():
            raise NotReady(
                f"MILLSTREAM_IVY_SETTINGS names {path}, which is not a file", "correct it, or unset it"
            )
        return path
    usual = Path.home() / ".ivy2" / "ivysettings.xml"
    return usual if usual.is_file() else None


@contextmanager
def fetched(
    coordinates: Sequence[str], folder: Path, size: int, tell: Callable[[str], None]
) -> Iterator[Path]:
    """A folder inside `folder` with each jar as NAME-VERSION.jar, removed at the end.

    `size` is what all of them weigh, in bytes, for the progress told. Raises NotReady when Ivy fails.
    """
    staging = Path(tempfile.mkdtemp(prefix="fetching-", dir=folder))
    try:
        _call(coordinates, staging, size, tell)
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _call(coordinates: Sequence[str], staging: Path, size: int, tell: Callable[[str], None]) -> None:
    settings = settings_of_user()
    if settings is None:
        settings = staging / "settings.xml"
        settings.write_text(SETTINGS)
    wanted = staging / "wanted.xml"
    wanted.write_text(_wanted(coordinates))
    ivy = next((pyspark_folder() / "jars").glob("ivy-*.jar"))
    command: list[str | Path] = [
        find_java().binary, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", ivy, "org.apache.ivy.Main",
        "-settings", settings, "-cache", staging / "cache", "-ivy", wanted,
        "-retrieve", f"{staging}/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    with (staging / "log").open("w+") as log:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        ) as running:
            _watch(running, staging / "cache", len(coordinates), size, tell)
        if running.returncode != 0:
            log.seek(0)
            raise NotReady(_reason(coordinates, log.read()), _cure(settings, staging))


def _watch(
    running: subprocess.Popen[bytes], cache: Path, count: int, size: int, tell: Callable[[str], None]
) -> None:
    """Tell how much has arrived until Ivy ends; a caller who is interrupted takes Ivy along."""
    try:
        while True:
            tell(f"fetching {count} jars: {_weight(cache) / 1e6:.0f} of {size / 1e6:.0f} MB")
            try:
                running.wait(LOOK)
            except subprocess.TimeoutExpired:
                continue
            return
    finally:
        if running.poll() is None:
            running.kill()


def _weight(folder: Path) -> int:
    """Bytes of all jars in the folder, the unfinished ones included."""
    total = 0
    for path in folder.rglob("*.jar*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # renamed between the listing and the look
            continue
    return total


def _wanted(coordinates: Sequence[str]) -> str:
    lines = []
    for at in coordinates:
        organisation, name, version = at.split(":")
        lines.append(
            f"<dependency org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(version)}"
            f' transitive="false"><artifact name={quoteattr(name)} type="jar" ext="jar"/></dependency>'
        )
    body = "\n".join(lines)
    return (
        '<ivy-module version="2.0"><info organisation="millstream" module="jars"/>\n'
        f"<dependencies>\n{body}\n</dependencies></ivy-module>\n"
    )


def _reason(coordinates: Sequence[str], log: str) -> str:
    """One sentence from Ivy's long account."""
    first = coordinates[0].split(":")[1]
    others = len(coordinates) - 1
    what = f"{first} and {others} more jars are" if others else f"{first} is"
    for sign, meaning in (
        ("UnknownHostException", "the repository's host is not known here (no network?)"),
        ("Host", "the repository's host cannot be reached (no network?)"),
        ("ConnectException", "the repository refused the connection"),
        ("SSLHandshakeException", "the repository's certificate is not trusted by this Java"),
        ("not found", "the repository does not have it"),
    ):
        if sign in log:
            return f"{what} not in the cache and could not be fetched: {meaning}"
    return f"{what} not in the cache and could not be fetched"


def _cure(settings: Path, staging: Path) -> str:
    if settings.parent != staging:
        return f"look at the mirror that {settings} names"
    return (
        "fetch them once with a network ('millstream jars fetch'), or name a mirror's Ivy settings"
        " in MILLSTREAM_IVY_SETTINGS"
    )
