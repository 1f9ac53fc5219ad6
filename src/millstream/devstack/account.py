"""The account under which a server runs that refuses to run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

# Inside a user namespace any account but root will do: outside it, process and files are root's.
_INSIDE = "1000"
# "nobody" on every Linux system; used where user namespaces are forbidden, as in most containers.
_NOBODY = 65534
# Lets that account read the folders above the data and the binaries, which may be root's alone.
_RIGHTS = "+dac_override,+dac_read_search"


@cache
def prefix() -> tuple[str, ...]:
    """Words to put before a command line so that it does not run as root; empty for a plain user.

    Raises NotReady when this machine offers no way.
    """
    if os.geteuid() != 0:
        return ()
    ways = (
        ("unshare", "-U", f"--map-user={_INSIDE}", f"--map-group={_INSIDE}"),
        (
            "setpriv",
            f"--reuid={_NOBODY}",
            f"--regid={_NOBODY}",
            "--clear-groups",
            "--pdeathsig=SIGQUIT",  # a change of account makes the kernel forget the one set before
            f"--inh-caps={_RIGHTS}",
            f"--ambient-caps={_RIGHTS}",
        ),
    )
    for way in ways:
        if (
            shutil.which(way[0])
            and subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0
        ):
            return way
    raise NotReady(
        "PostgreSQL refuses to run as root, and this machine lets root take no other account",
        "run as a plain user, or name a server that exists with --postgres-url",
    )


def own(folder: Path) -> None:
    """Give a folder and all in it to the account that `prefix` leads to."""
    if not prefix() or prefix()[0] == "unshare":
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
