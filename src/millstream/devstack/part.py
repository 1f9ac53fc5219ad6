"""What the guardian must know of a server to start and stop it, and nothing more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """One server of the stack as a process.

    `stop` asks it to end, `grace` is how many seconds it may take, `death` is sent by the kernel when the
    guardian itself is gone. `run` says whether it should run; a greater `turn` starts it again.
    """

    name: str
    argv: tuple[str, ...]
    log: str
    stop: str = "SIGTERM"
    death: str = "SIGKILL"
    grace: float = 5.0
    run: bool = True
    turn: int = 1

    def to_json(self) -> dict[str, Any]:
        """As the guardian reads it."""
        return {**asdict(self), "argv": list(self.argv)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Part:
        """As `to_json` wrote it."""
        return cls(**{**data, "argv": tuple(data["argv"])})
