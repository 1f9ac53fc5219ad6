"""The stack's folder with its addresses, process states and password."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.private_folder import make_private
from millstream.devstack.ports import LOCAL
from millstream.devstack.supervisor.process import Identity
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER = "millstream"
SPARK_MASTER = "spark-master"
"""The server that executors and drivers of the stack's Spark cluster register with."""

NAME_NODE = "hdfs-namenode"
"""The server that clients of the stack's HDFS connect to."""

S3_SERVER = "s3"
"""The S3-compatible server."""
S3_BUCKET = "millstream-local"
"""The bucket that it has, which no spec would name by chance."""


@dataclass(frozen=True)
class Endpoints:
    """Addresses of a stack: `kafka` as HOST:PORT, `postgres` as a URL with password, and the project's folder.

    `spark` is the URL of the cluster's master, `hdfs` that of the file system, and `s3` that of the bucket. Each
    address is an empty text for a stack without such a server.
    """

    kafka: str
    postgres: str
    folder: Path
    spark: str = ""
    hdfs: str = ""
    s3: str = ""

    def environment(self) -> dict[str, str]:
        """Return the environment variables that a spec reads."""
        addresses = {
            "KAFKA": self.kafka,
            "POSTGRES_URL": self.postgres,
            "SPARK_MASTER": self.spark,
            "HDFS": self.hdfs,
            "S3": self.s3,
        }
        return {name: address for name, address in addresses.items() if address}

    def to_json(self) -> dict[str, str]:
        """Return the addresses by server, and the folder."""
        servers = {"kafka": self.kafka, "postgres": self.postgres}
        others = {"spark": self.spark, "hdfs": self.hdfs, "s3": self.s3}
        known = {name: address for name, address in {**servers, **others}.items() if address}
        return {**known, "folder": str(self.folder)}


@dataclass(frozen=True)
class ServerStatus:
    """The last state of a server observed by the guardian: `running`, `stopping`, `stopped` or `failed`."""

    state: str
    turn: int
    process: Identity | None = None
    code: int | None = None


@dataclass(frozen=True)
class StackState:
    """The state written by the guardian: its process, whether it ends with its starter, and its servers."""

    guardian: Identity
    is_attached: bool = False
    servers: dict[str, ServerStatus] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether the guardian still runs. If not, the other fields are outdated."""
        return self.guardian.is_alive

    def to_json(self) -> dict[str, Any]:
        """Return the JSON data of the state file."""
        return {
            "guardian": {"pid": self.guardian.pid, "born": self.guardian.born},
            "attached": self.is_attached,
            "servers": {
                name: {
                    "state": server_status.state,
                    "turn": server_status.turn,
                    "code": server_status.code,
                    "pid": server_status.process.pid if server_status.process else None,
                    "born": server_status.process.born if server_status.process else None,
                }
                for name, server_status in self.servers.items()
            },
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StackState:
        """Create a state from the data of `to_json`. Raises KeyError or TypeError for invalid data."""
        servers = {
            name: ServerStatus(
                entry["state"],
                entry["turn"],
                Identity(entry["pid"], entry["born"]) if entry["pid"] else None,
                entry["code"],
            )
            for name, entry in data["servers"].items()
        }
        guardian = Identity(data["guardian"]["pid"], data["guardian"]["born"])
        return cls(guardian, data["attached"], servers)


class Home:
    """The folder `.millstream/stack` of a project."""

    def __init__(self, folder: Path) -> None:
        self.project = folder.resolve()
        self.path = self.project / ".millstream" / "stack"

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def make(self) -> None:
        """Create the folder, readable only by its owner. Raises NotReady if it cannot be created or written."""
        try:
            make_private(self.path)
            make_private(self / "logs")
        except OSError as error:
            raise NotReady(
                f"the folder {self.path} cannot be written: {error.strerror}",
                "run as its owner, or copy the project to a folder that you may write",
            ) from error

    def log(self, server: str) -> Path:
        """Return a server's log file."""
        return self / "logs" / f"{server}.log"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the stack, so that two commands do not change it at the same time."""
        self.make()
        with (self / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def state(self) -> StackState | None:
        """Return the state last written by the guardian, even if it has ended; None if there is none."""
        data = self._read_json("state.json")
        try:
            return StackState.from_json(data) if data else None
        except (KeyError, TypeError):
            return None

    def parts(self) -> dict[str, ServerSpec]:
        """Return the servers that the guardian should run."""
        return {name: ServerSpec.from_json(entry) for name, entry in self._read_json("parts.json").items()}

    def addresses(self) -> dict[str, Any]:
        """Return the ports by listener, and under `outside` the addresses of external servers."""
        return self._read_json("addresses.json")

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Write data as JSON atomically, readable only by its owner."""
        self.write_private(name, json.dumps(data, indent=1))

    def write_private(self, name: str, text: str) -> None:
        """Write a file atomically, readable only by its owner. Several threads may write the same one."""
        draft = self / f"{name}.{secrets.token_hex(4)}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(text)
            draft.replace(self / name)
        finally:
            # It is left if the disk is full, and the guardian tries again every few seconds.
            draft.unlink(missing_ok=True)

    def password(self) -> str:
        """Return the database's password, or an empty text if none was created yet."""
        try:
            return (self / "password").read_text().strip()
        except FileNotFoundError:
            return ""

    def endpoints(self) -> Endpoints:
        """Return the addresses of the servers, which are fixed even before they start."""
        addresses = self.addresses()
        outside = addresses.get("outside", {})
        own_broker = f"{LOCAL}:{addresses['kafka']}" if "kafka" in addresses else ""
        own_url = (
            f"postgresql://{USER}:{self.password()}@{LOCAL}:{addresses['postgres']}/{USER}"
            if "postgres" in addresses
            else ""
        )
        own_servers = self.parts()
        return Endpoints(
            outside.get("kafka") or own_broker,
            outside.get("postgres") or own_url,
            self.project,
            f"spark://{LOCAL}:{addresses.get(SPARK_MASTER, 0)}" if SPARK_MASTER in own_servers else "",
            f"hdfs://{LOCAL}:{addresses.get(NAME_NODE, 0)}" if NAME_NODE in own_servers else "",
            f"s3a://{S3_BUCKET}" if S3_SERVER in own_servers else "",
        )

    def is_up(self) -> bool:
        """Return whether a stack runs, either with its own servers or with external servers only."""
        state = self.state()
        return (state is not None and state.is_alive) or bool(
            self.addresses().get("outside") and not self.parts()
        )

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads((self / name).read_text())
        except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}


def without_credentials(address: str) -> str:
    """Return an address without user and password."""
    return address.rpartition("@")[2] or address
