"""Start, stop and look at the local stack of a project: a Kafka broker and a PostgreSQL server."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from millstream.connectors.source import Need
from millstream.devstack import ports, ready
from millstream.devstack.lease import release, spawn
from millstream.devstack.part import Part
from millstream.devstack.process import Identity, ended
from millstream.devstack.state import Endpoints, Home, State, shown
from millstream.diagnostics.failure import NotReady, WrongUse

SERVERS = ("kafka", "postgres")
_LEAVING = 20.0
_LOG_BYTES = 5_000_000

Progress = Callable[[str], None]
Needs = Sequence[Need] | Callable[[Endpoints], Sequence[Need]]


@dataclass(frozen=True)
class Status:
    """One server as `ps` shows it.

    `state` is running, stopping, stopped, failed, or outside for a server that is not ours; `address`
    carries no password; `code` is how a failed one ended.
    """

    name: str
    state: str
    address: str
    pid: int | None = None
    code: int | None = None
    log: Path | None = None


def up(
    folder: Path,
    needs: Needs = (),
    progress: Progress | None = None,
    *,
    attached: bool = False,
    servers: Sequence[str] = SERVERS,
    wanted_ports: Mapping[str, int] | None = None,
    outside: Mapping[str, str] | None = None,
) -> Endpoints:
    """Have the servers of a project's stack running, with what a pipeline needs, and give where they answer.

    What runs already is left alone. `needs` may be a function of the addresses; it is called while the
    servers start. An `attached` stack ends with this process, however that ends; another one stays until
    `down`. `wanted_ports` asks for ports by server, `outside` names servers by address that exist
    elsewhere. Raises NotReady when a part is missing, a port is taken or a server does not come up.
    """
    home, tell = Home(folder), progress or _quiet
    with home.alone():
        before = _standing(home)
        # Servers of others alone need no guardian: they are the stack until `down`.
        fresh = before is None and not home.up()
        try:
            _settle(home, outside or {}, fresh=fresh)
            starting = _to_start(home, before, servers, wanted_ports or {}, fresh=fresh)
            if starting:
                _start(home, starting, wanted_ports or {}, tell, attached=attached, fresh=fresh)
            endpoints = home.endpoints()
            asked = needs(endpoints) if callable(needs) else needs
            ready.wait(home, tell)
            ready.provide(home, endpoints, asked, tell)
        except BaseException:
            # Half a stack helps nobody: what this call began ends with it.
            if fresh:
                _end(home)
            raise
    return endpoints


def down(folder: Path) -> bool:
    """Stop a project's stack; its data stays. False when none was running."""
    home = Home(folder)
    if not (home / "addresses.json").exists():
        return False
    with home.alone():
        return _end(home)


def start(folder: Path, server: str, progress: Progress | None = None) -> Endpoints:
    """Start one server of the stack, and the stack with it when none runs."""
    return up(folder, (), progress, servers=(_known(server),))


def stop(folder: Path, server: str) -> bool:
    """Stop one server and keep the others running; its port stays its own. False when it was not running."""
    home = Home(folder)
    _known(server)
    with home.alone():
        state = _standing(home)
        seen = state.servers.get(server) if state else None
        if state is None or seen is None or seen.state != "running":
            return False
        parts = home.parts()
        part = parts[server]
        parts[server] = Part(**{**part.__dict__, "run": False})
        _order(home, parts)
        state.guardian.send(signal.SIGHUP)
        if seen.process and not ended([seen.process], part.grace + 5):
            raise NotReady(
                f"{server} (pid {seen.process.pid}) does not end", "stop the stack with 'millstream down'"
            )
        return True


def status(folder: Path) -> list[Status]:
    """Each server of the stack that was started or named, in a fixed order; empty when no stack runs."""
    home = Home(folder)
    state, addresses = home.state(), home.addresses()
    outside = addresses.get("outside", {})
    if not home.up():
        return []
    found = []
    for name in SERVERS:
        if name in outside:
            found.append(Status(name, "outside", shown(outside[name])))
        elif state and name in state.servers:
            seen = state.servers[name]
            pid = seen.process.pid if seen.process else None
            address = f"{ports.LOCAL}:{addresses.get(name)}"
            code = seen.code if seen.state == "failed" else None
            found.append(Status(name, seen.state, address, pid, code, home.log(name)))
    return found


def environment(folder: Path) -> dict[str, str]:
    """KAFKA and POSTGRES_URL of the stack that runs for a project, or nothing when none does. Cheap."""
    home = Home(folder)
    return home.endpoints().environment() if home.up() else {}


def log_file(folder: Path, server: str) -> Path:
    """Where a server of ours writes its log."""
    return Home(folder).log(_known(server))


def _known(server: str) -> str:
    if server not in SERVERS:
        raise WrongUse(f"the stack has no server '{server}'", f"name {' or '.join(SERVERS)}")
    return server


def _quiet(text: str) -> None:
    """For a caller who wants no progress."""


def _standing(home: Home) -> State | None:
    """The state of a guardian that runs; what a dead one left behind is cleared away first."""
    state = home.state()
    if state is None or state.alive:
        return state
    _kill_servers(state)
    (home / "state.json").unlink(missing_ok=True)
    return None


def _settle(home: Home, outside: Mapping[str, str], *, fresh: bool) -> None:
    """Write down which servers are others'; a stack that runs keeps the ones it has."""
    known = home.addresses()
    if fresh:
        if outside or "outside" in known:
            home.write("addresses.json", {**known, "outside": dict(outside)})
        return
    if outside and dict(outside) != known.get("outside", {}):
        raise NotReady("a stack with other servers runs here", "stop it first: millstream down")


def _to_start(
    home: Home, before: State | None, servers: Sequence[str], wanted: Mapping[str, int], *, fresh: bool
) -> list[str]:
    """The servers that are asked for, are ours, and do not run."""
    known = home.addresses()
    starting = []
    for name in servers:
        seen = before.servers.get(name) if before else None
        if name in known.get("outside", {}):
            continue
        if fresh or seen is None or seen.state != "running":
            starting.append(name)
        elif wanted.get(name) not in (None, known.get(name)):
            raise NotReady(f"{name} runs at port {known.get(name)}", "stop it first: millstream down")
    return starting


def _start(
    home: Home, names: list[str], wanted: Mapping[str, int], tell: Progress, *, attached: bool, fresh: bool
) -> None:
    """Choose ports, make ready what is missing on disk, and have the guardian run the servers."""
    known = home.addresses()
    # A server that is not started yet has its address all the same: `environment` gives both.
    if "kafka" in names or "kafka" not in known:
        known["kafka"] = _port(home, known, "kafka", 0, wanted)
        known["controller"] = _port(home, known, "controller", 1, {})
    if "postgres" in names or "postgres" not in known:
        known["postgres"] = _port(home, known, "postgres", 2, wanted)
    home.write("addresses.json", known)
    with ThreadPoolExecutor(len(names)) as pool:
        made = list(pool.map(lambda name: _prepare(home, name, known, tell), names))
    # The turn grows with each start, so that the guardian tells a wish to start again from an old one.
    old = {} if fresh else home.parts()
    for part in made:
        turn = old[part.name].turn + 1 if part.name in old else 1
        old[part.name] = Part(**{**part.__dict__, "turn": turn})
        log = Path(part.log)
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    _order(home, old)
    tell(f"starting {' and '.join(names)}")
    state = home.state()
    if state is not None and state.alive:
        state.guardian.send(signal.SIGHUP)
    else:
        spawn(home, attached=attached)


def _port(home: Home, known: Mapping[str, int], name: str, nth: int, wanted: Mapping[str, int]) -> int:
    if name in wanted:
        return ports.demand(wanted[name], name, f"--{name}-port")
    used = frozenset(int(port) for other, port in known.items() if other not in (name, "outside"))
    return ports.choose(home.project, nth, known.get(name), used | frozenset(wanted.values()))


def _prepare(home: Home, name: str, known: Mapping[str, int], tell: Progress) -> Part:
    # Imported here: `environment` is asked by every command and must not load clients of servers.
    from millstream.devstack import kafka, postgres  # noqa: PLC0415

    if name == "kafka":
        return kafka.prepare(home, known["kafka"], known["controller"], tell)
    return postgres.prepare(home, known["postgres"], tell)


def _order(home: Home, parts: Mapping[str, Part]) -> None:
    home.write("parts.json", {name: part.to_json() for name, part in parts.items()})


def _end(home: Home) -> bool:
    """Stop guardian and servers, forget them, and say whether there were any."""
    state = home.state()
    running = home.up()
    if state is not None:
        state.guardian.send(signal.SIGTERM)
        if not ended([state.guardian], _LEAVING):
            state.guardian.send(signal.SIGKILL)
        _kill_servers(state)
    release(home.path)
    for name in ("state.json", "parts.json"):
        (home / name).unlink(missing_ok=True)
    known = home.addresses()
    if known.pop("outside", None) is not None:
        home.write("addresses.json", known)
    return running


def _kill_servers(state: State) -> None:
    """End servers that outlived their guardian, where the kernel does not see to that."""
    left: list[Identity] = [
        seen.process for seen in state.servers.values() if seen.process and seen.process.alive
    ]
    for process in left:
        with contextlib.suppress(PermissionError):
            process.send(signal.SIGKILL)
    ended(left, 5.0)
