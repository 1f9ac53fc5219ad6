"""Wait until the servers of a stack answer, and make in them what a pipeline needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.state import Endpoints, Home, Seen, shown
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from millstream.connectors.source import Need
    from millstream.devstack.part import Part

# Servers answer within 4 seconds on two cores; a machine under load gets ten times that.
_SECONDS = 45.0

Progress = Callable[[str], None]

# The clients of Kafka and PostgreSQL are imported where they are needed: every command asks
# `stack.environment`, and none must load them for it.


def wait(home: Home, tell: Progress) -> None:
    """Wait until each server that should run answers; NotReady with its last words when one does not."""
    waiting = [part for part in home.parts().values() if part.run]
    outside = home.addresses().get("outside", {})
    checks: list[Callable[[], None]] = [lambda part=part: _await_own(home, part) for part in waiting]  # type: ignore[misc]
    checks += [lambda name=name: _await_other(name, outside[name]) for name in outside]  # type: ignore[misc]
    if not checks:
        return
    with ThreadPoolExecutor(len(checks)) as pool:
        for done in [pool.submit(check) for check in checks]:
            done.result()
    tell("all servers answer")


def _await_own(home: Home, part: Part) -> None:
    from millstream.devstack import kafka, postgres  # noqa: PLC0415 - see above

    def running() -> bool:
        seen = _seen(home, part)
        return seen is None or seen.state == "running"

    endpoints = home.endpoints()
    if part.name == "kafka":
        good = kafka.ready(endpoints.kafka, _SECONDS, running)
    else:
        good = postgres.ready(endpoints.postgres, _SECONDS, running)
    if not good:
        how = "does not answer" if running() else "ended while it started"
        words = _last_words(Path(part.log))
        raise NotReady(f"{part.name} {how}: {words}", f"read its log: {part.log}")


def _await_other(name: str, address: str) -> None:
    from millstream.devstack import kafka, postgres  # noqa: PLC0415 - see above

    if name == "kafka":
        if not kafka.ready(address, 8.0, lambda: True):
            raise NotReady(
                f"the Kafka broker at {address} does not answer", "look at --kafka, or start that broker"
            )
    elif said := postgres.why_not(address):
        raise NotReady(f"the database at {shown(address)} lets nobody in: {said}", "look at --postgres-url")


def _seen(home: Home, part: Part) -> Seen | None:
    """What the guardian says about this very start of a server; None until it says something."""
    state = home.state()
    if state is None:
        return None
    if not state.alive:
        return Seen("failed", part.turn)
    seen = state.servers.get(part.name)
    return seen if seen and seen.turn == part.turn else None


def provide(home: Home, endpoints: Endpoints, needs: Sequence[Need], tell: Progress) -> None:
    """Make the topics among the needs, when a broker runs."""
    wanted = {need.name: need.settings for need in needs if (need.system, need.what) == ("kafka", "topic")}
    part = home.parts().get("kafka")
    if not wanted or not ("kafka" in home.addresses().get("outside", {}) or (part and part.run)):
        return
    from millstream.devstack import topics  # noqa: PLC0415 - see above

    made = topics.provide(endpoints.kafka, wanted)
    if made:
        tell(f"topics made: {', '.join(made)}")


def _last_words(log: Path) -> str:
    """The line of a log that tells best why a server ended."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-200:]
    except OSError:
        return "it left no log"
    told = [line for line in lines if "ERROR" in line or "FATAL" in line or "Exception" in line]
    return (told or lines or ["it left no word"])[-1].strip()[:300]
