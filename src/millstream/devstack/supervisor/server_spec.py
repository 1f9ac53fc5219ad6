"""The description of a server that the guardian needs to start and stop it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ServerSpec:
    """One server process of the stack.

    The signal `stop` asks it to end within `grace` seconds; the kernel sends `death` if the guardian dies.
    `run` is whether it should run; a greater `turn` restarts it. `environment` is added to the guardian's own.
    """

    name: str
    argv: tuple[str, ...]
    log: str
    stop: str = "SIGTERM"
    death: str = "SIGKILL"
    grace: float = 5.0
    run: bool = True
    turn: int = 1
    environment: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON data that the guardian reads."""
        return {**asdict(self), "argv": list(self.argv)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ServerSpec:
        """Create a spec from the data of `to_json`."""
        return cls(**{**data, "argv": tuple(data["argv"])})
