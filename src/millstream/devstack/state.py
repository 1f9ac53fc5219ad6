"""The stack's folder: where its addresses, its processes and its password are written down."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.devstack.part import Part
from millstream.devstack.ports import LOCAL
from millstream.devstack.process import Identity
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER = "millstream"


@dataclass(frozen=True)
class Endpoints:
    """Where a stack answers: `kafka` HOST:PORT, `postgres` a URL with its password, its project's folder."""

    kafka: str
    postgres: str
    folder: Path

    def environment(self) -> dict[str, str]:
        """The variables that a spec reads."""
        return {"KAFKA": self.kafka, "POSTGRES_URL": self.postgres}


@dataclass(frozen=True)
class Seen:
    """A server as the guardian last saw it: its process, and `running`, `stopping`, `stopped` or `failed`."""

    state: str
    turn: int
    process: Identity | None = None
    code: int | None = None


@dataclass(frozen=True)
class State:
    """What the guardian wrote: itself, whether it ends with its starter, and its servers by name."""

    guardian: Identity
    attached: bool = False
    servers: dict[str, Seen] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Does that guardian still run? If not, all else here is stale."""
        return self.guardian.alive

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {
            "guardian": {"pid": self.guardian.pid, "born": self.guardian.born},
            "attached": self.attached,
            "servers": {
                name: {
                    "state": seen.state,
                    "turn": seen.turn,
                    "code": seen.code,
                    "pid": seen.process.pid if seen.process else None,
                    "born": seen.process.born if seen.process else None,
                }
                for name, seen in self.servers.items()
            },
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        """As `to_json` wrote it. Raises KeyError or TypeError for another shape."""
        servers = {
            name: Seen(
                one["state"],
                one["turn"],
                Identity(one["pid"], one["born"]) if one["pid"] else None,
                one["code"],
            )
            for name, one in data["servers"].items()
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
        """Make it, readable by its owner only. Raises NotReady when it cannot be made or written."""
        try:
            (self / "logs").mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as refused:
            raise NotReady(
                f"the folder {self.path} cannot be written: {refused.strerror}",
                "run as its owner, or copy the project to a folder that you may write",
            ) from refused

    def log(self, server: str) -> Path:
        """A server's log file."""
        return self / "logs" / f"{server}.log"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the stack's lock: two commands do not change one stack at the same time."""
        self.make()
        with (self / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def state(self) -> State | None:
        """What the guardian wrote last, also when it has ended since; None when there is nothing readable."""
        data = self._read("state.json")
        try:
            return State.from_json(data) if data else None
        except (KeyError, TypeError):
            return None

    def parts(self) -> dict[str, Part]:
        """The servers that the guardian was told to run."""
        return {name: Part.from_json(one) for name, one in self._read("parts.json").items()}

    def addresses(self) -> dict[str, Any]:
        """Ports by listener, and under `outside` the servers that are not ours."""
        return self._read("addresses.json")

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Put a file in place whole, readable by its owner only."""
        draft = self / f"{name}.{os.getpid()}"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            json.dump(data, stream, indent=1)
        draft.replace(self / name)

    def password(self) -> str:
        """The database's password, or nothing when none was made yet."""
        try:
            return (self / "password").read_text().strip()
        except FileNotFoundError:
            return ""

    def endpoints(self) -> Endpoints:
        """Where the servers answer, or will answer once they are started."""
        known = self.addresses()
        outside = known.get("outside", {})
        own = f"postgresql://{USER}:{self.password()}@{LOCAL}:{known.get('postgres', 0)}/{USER}"
        return Endpoints(
            outside.get("kafka") or f"{LOCAL}:{known.get('kafka', 0)}",
            outside.get("postgres") or own,
            self.project,
        )

    def up(self) -> bool:
        """Does a stack run here, of our own servers or of others' alone?"""
        state = self.state()
        return (state is not None and state.alive) or len(self.addresses().get("outside", {})) == 2

    def _read(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads((self / name).read_text())
        except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}


def shown(address: str) -> str:
    """An address without user and password."""
    return address.rpartition("@")[2] or address
