"""Run a server that refuses to run as root under another account."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

# Inside a user namespace any account except root works: outside it, process and files belong to root.
_NAMESPACE_ID = "1000"
# "nobody" on every Linux system; used if user namespaces are forbidden, as in most containers.
_NOBODY = 65534
# Lets that account read the parent folders of the data and the binaries, which may be readable only by root.
_CAPABILITIES = "+dac_override,+dac_read_search"


@cache
def command_prefix() -> tuple[str, ...]:
    """Return the prefix of a command line that makes it run as another user than root; empty for a normal user.

    Raises NotReady if this machine offers no way.
    """
    if os.geteuid() != 0:
        return ()
    commands = (
        ("unshare", "-U", f"--map-user={_NAMESPACE_ID}", f"--map-group={_NAMESPACE_ID}"),
        (
            "setpriv",
            f"--reuid={_NOBODY}",
            f"--regid={_NOBODY}",
            "--clear-groups",
            "--pdeathsig=SIGQUIT",  # a change of account clears the signal that was set before
            f"--inh-caps={_CAPABILITIES}",
            f"--ambient-caps={_CAPABILITIES}",
        ),
    )
    for command in commands:
        if (
            shutil.which(command[0])
            and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
        ):
            return command
    raise NotReady(
        "PostgreSQL refuses to run as root, and root cannot switch to another account on this machine",
        "run as a normal user, or use an existing server with --postgres-url",
    )


def change_owner(folder: Path) -> None:
    """Make the account of `command_prefix` the owner of a folder and everything in it."""
    if not command_prefix() or command_prefix()[0] == "unshare":
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
