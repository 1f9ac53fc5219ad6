"""A package of a project, unpacked next to an environment that has the packages of its lock and no Millstream."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.cli.main import run_command
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from pathlib import Path

# Brings the loopback device of the process's own network up, which the gateway to the JVM needs, and runs a command.
_LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Unpacked:
    """The folder of an unpacked package, and the Python of its environment."""

    folder: Path
    python: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def env(self, **more: str) -> dict[str, str]:
        """The variables of a machine without caches and without a repository of jars."""
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        nowhere = home / "ivysettings.xml"
        nowhere.write_text("<ivysettings/>")
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "JAVA_HOME": str(find_java().home),
            "MILLSTREAM_IVY_SETTINGS": str(nowhere),
            "MILLSTREAM_ARCHIVE": "off",
            **more,
        }


def unpack(project: Path, folder: Path) -> Unpacked:
    """Package a project, unpack the archive, and install what its lock names."""
    archive = folder / "package.tar.gz"
    assert run_command(["package", "-f", str(project), "-o", str(archive)]) == 0
    unpacked = folder / "unpacked"
    with tarfile.open(archive) as opened:
        opened.extractall(unpacked, filter="data")
    environment = folder / "environment"
    python = environment / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(environment)], check=True)
    install = [
        *uv, "pip", "install", "-q", "--no-deps", "--python", str(python), "-r", str(unpacked / "requirements.lock"),
    ]  # fmt: skip
    # From the cache of `make install` where it holds everything; an index may make uv build pyspark anew each time.
    if subprocess.run([*install, "--offline"], check=False, capture_output=True).returncode != 0:
        subprocess.run(install, check=True)
    return Unpacked(unpacked, python)


def isolation(*, network: bool) -> list[str]:
    """Words before a command that give it its own processes, of which it is the first, and with `network` no network.

    A user who is not root gets them in a user namespace. Where the system refuses that, network stays as it is, and
    only the variables of `Unpacked.env` keep jars from being fetched.
    """
    user = [] if os.geteuid() == 0 else ["-r"]
    words = ["unshare", *user, *(["-n"] if network else []), "-p", "-f", "--mount-proc", "--kill-child"]
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode != 0:
        return []
    return [*words, sys.executable, "-c", _LOOPBACK_UP] if network else words
