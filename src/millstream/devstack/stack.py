"""Start, stop and inspect the local stack of a project: a Kafka broker, a PostgreSQL server, Spark, HDFS, S3."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from millstream.connectors.api.values.problem import RequiredResource
from millstream.devstack import ports
from millstream.devstack.servers import hdfs, ready, s3, spark_cluster
from millstream.devstack.supervisor.process import Identity, wait_for_exit
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.spawn import release_guardian, spawn_guardian
from millstream.devstack.supervisor.state import (
    NAME_NODE,
    S3_SERVER,
    SPARK_MASTER,
    Endpoints,
    Home,
    StackState,
    without_credentials,
)
from millstream.diagnostics.failure import InvalidInput, NotReady

SERVERS = ("kafka", "postgres")
"""The servers of every stack."""
ALL_SERVERS = (*SERVERS, *hdfs.SERVERS, S3_SERVER, *spark_cluster.SERVERS)
"""The same, and those of a stack with HDFS, S3 or a Spark cluster."""
_STOP_TIMEOUT = 20.0
_LOG_BYTES = 5_000_000

Progress = Callable[[str], None]
Needs = Sequence[RequiredResource] | Callable[[Endpoints], Sequence[RequiredResource]]


@dataclass(frozen=True)
class Status:
    """The status of one server, as shown by `ps`.

    `state` is running, stopping, stopped, failed, or outside for an external server; `address`
    contains no password; `code` is the exit code of a failed server.
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
    cluster: spark_cluster.ClusterSize | None = None,
    with_hdfs: bool = False,
    with_s3: bool = False,
    wanted_ports: Mapping[str, int] | None = None,
    outside: Mapping[str, str] | None = None,
    grace: float | None = None,
) -> Endpoints:
    """Start the servers of a project's stack, create the resources a pipeline needs, and return the addresses.

    Running servers are not touched. `needs` may be a function of the addresses, called while the servers
    start. An `attached` stack ends with this process, however that ends; any other runs until `down`.
    `cluster` adds a Spark master and workers, `with_hdfs` a name node and a data node, `with_s3` an S3 server.
    `wanted_ports` requests ports by server; `outside` contains addresses of external servers. `grace` limits the
    seconds a server may take to stop before it is killed, if it is less than the server's own limit.
    Raises NotReady if a component is missing, a port is taken, or a server does not start.
    """
    home, report = Home(folder), progress or _quiet
    with home.alone():
        previous_state = _running_state(home)
        # External servers need no guardian: they alone are the stack until `down`.
        fresh = previous_state is None and not home.is_up()
        if fresh:
            # Those of a stack whose guardian was killed do not run.
            (home / "parts.json").unlink(missing_ok=True)
        try:
            _record_outside(home, outside or {}, fresh=fresh)
            if cluster is not None:
                spark_cluster.write_size(home, cluster)
                servers = (*servers, SPARK_MASTER, *spark_cluster.WORKERS[: cluster.workers])
            if with_hdfs:
                servers = (*servers, *hdfs.SERVERS)
            if with_s3:
                servers = (*servers, S3_SERVER)
            starting = _servers_to_start(home, previous_state, servers, wanted_ports or {}, fresh=fresh)
            log_sizes: dict[str, int] = {}
            if starting:
                log_sizes = _start(
                    home, starting, wanted_ports or {}, report, attached=attached, fresh=fresh, grace=grace
                )
            endpoints = home.endpoints()
            resources = needs(endpoints) if callable(needs) else needs
            ready.wait_for_servers(home, report, log_sizes)
            ready.create_resources(home, endpoints, resources, report)
        except BaseException:
            # Half a stack is useless, so stop everything that this call started.
            if fresh:
                _stop_stack(home)
            raise
    return endpoints


def down(folder: Path) -> bool:
    """Stop a project's stack and keep its data. Return False if none was running."""
    home = Home(folder)
    if not (home / "addresses.json").exists():
        return False
    with home.alone():
        return _stop_stack(home)


def start(folder: Path, server: str, progress: Progress | None = None) -> Endpoints:
    """Start one server of the stack, and the stack itself if it is not running."""
    return up(folder, (), progress, servers=(_require_known(server),))


def stop(folder: Path, server: str) -> bool:
    """Stop one server, and keep its port and the other servers. Return False if it was not running."""
    home = Home(folder)
    _require_known(server)
    with home.alone():
        state = _running_state(home)
        server_status = state.servers.get(server) if state else None
        if state is None or server_status is None or server_status.state != "running":
            return False
        parts = home.parts()
        part = parts[server]
        parts[server] = ServerSpec(**{**part.__dict__, "run": False})
        _write_parts(home, parts)
        state.guardian.send(signal.SIGHUP)
        if server_status.process and not wait_for_exit([server_status.process], part.grace + 5):
            raise NotReady(
                f"{server} (pid {server_status.process.pid}) is still running after the request to stop",
                "stop the stack with 'millstream down'",
            )
        # The process ends a moment before the guardian reports it.
        deadline = time.monotonic() + part.grace
        while (
            (current := home.state())
            and current.servers[server].state == "stopping"
            and time.monotonic() < deadline
        ):
            time.sleep(0.02)
        return True


def status(folder: Path) -> list[Status]:
    """Return the status of each server of the stack, in a fixed order; empty if no stack runs."""
    home = Home(folder)
    state, addresses = home.state(), home.addresses()
    outside = addresses.get("outside", {})
    if not home.is_up():
        return []
    statuses = []
    for name in ALL_SERVERS:
        if name in outside:
            statuses.append(Status(name, "outside", without_credentials(outside[name])))
        elif state and name in state.servers:
            server_status = state.servers[name]
            pid = server_status.process.pid if server_status.process else None
            # Workers listen where the system lets them, and are reached through their master.
            address = f"{ports.LOCAL}:{addresses[name]}" if name in addresses else ""
            code = server_status.code if server_status.state == "failed" else None
            statuses.append(Status(name, server_status.state, address, pid, code, home.log(name)))
    return statuses


def environment(folder: Path) -> dict[str, str]:
    """Return KAFKA, POSTGRES_URL and, if they run, SPARK_MASTER, HDFS and S3; empty if no stack runs. Cheap."""
    home = Home(folder)
    return home.endpoints().environment() if home.is_up() else {}


def cluster_settings(folder: Path, master: str) -> dict[str, str]:
    """Return the settings with which a driver uses the stack's cluster; empty if `master` is another cluster's."""
    home = Home(folder)
    is_own = home.is_up() and master == home.endpoints().spark
    return spark_cluster.session_settings(home) if is_own else {}


def bucket_settings(folder: Path) -> dict[str, str]:
    """Return the settings with which Spark reaches the stack's S3 bucket; empty if none runs."""
    home = Home(folder)
    return s3.session_settings(home) if home.is_up() and home.endpoints().s3 else {}


def log_file(folder: Path, server: str) -> Path:
    """Return the log file of a server of the stack."""
    return Home(folder).log(_require_known(server))


def _require_known(server: str) -> str:
    if server not in ALL_SERVERS:
        raise InvalidInput(
            f"the stack has no server '{server}'", "'millstream ps' lists the servers of the stack"
        )
    return server


def _quiet(text: str) -> None:
    """Ignore progress, for callers that do not need it."""


def _running_state(home: Home) -> StackState | None:
    """Return the state of the running guardian, or None. Cleans up after a guardian that has died."""
    state = home.state()
    if state is None or state.is_alive:
        return state
    _kill_servers(state)
    (home / "state.json").unlink(missing_ok=True)
    return None


def _record_outside(home: Home, outside: Mapping[str, str], *, fresh: bool) -> None:
    """Record the addresses of external servers. Raises NotReady if a running stack has different ones."""
    known = home.addresses()
    if fresh:
        if outside or "outside" in known:
            home.write("addresses.json", {**known, "outside": dict(outside)})
        return
    if outside and dict(outside) != known.get("outside", {}):
        raise NotReady("a stack with other servers runs here", "stop it first: millstream down")


def _servers_to_start(
    home: Home,
    previous_state: StackState | None,
    servers: Sequence[str],
    requested_ports: Mapping[str, int],
    *,
    fresh: bool,
) -> list[str]:
    """Return the requested servers that belong to the stack and do not run."""
    addresses = home.addresses()
    starting = []
    for name in servers:
        server_status = previous_state.servers.get(name) if previous_state else None
        if name in addresses.get("outside", {}):
            continue
        if fresh or server_status is None or server_status.state != "running":
            starting.append(name)
        elif requested_ports.get(name) not in (None, addresses.get(name)):
            raise NotReady(f"{name} runs at port {addresses.get(name)}", "stop it first: millstream down")
    return starting


def _start(
    home: Home,
    names: list[str],
    requested_ports: Mapping[str, int],
    report: Progress,
    *,
    attached: bool,
    fresh: bool,
    grace: float | None,
) -> dict[str, int]:
    """Choose ports, prepare missing files, and order the guardian to run the servers.

    Return the bytes that each log has from earlier starts, by server.
    """
    known = home.addresses()
    # Assign an address also to a server that is not started, because `environment` returns both.
    if "kafka" in names or "kafka" not in known:
        known["kafka"] = _port(home, known, "kafka", 0, requested_ports)
        known["controller"] = _port(home, known, "controller", 1, {})
    if "postgres" in names or "postgres" not in known:
        known["postgres"] = _port(home, known, "postgres", 2, requested_ports)
    if SPARK_MASTER in names:
        known[SPARK_MASTER] = _port(home, known, SPARK_MASTER, 3, requested_ports)
    if NAME_NODE in names:
        known[NAME_NODE] = _port(home, known, NAME_NODE, 4, requested_ports)
    if S3_SERVER in names:
        known[S3_SERVER] = _port(home, known, S3_SERVER, 5, requested_ports)
    home.write("addresses.json", known)
    with ThreadPoolExecutor(len(names)) as pool:
        prepared = list(pool.map(lambda name: _prepare(home, name, known, report), names))
    # The turn grows with each start, so that the guardian can tell a new start request from an old one.
    server_specs = {} if fresh else home.parts()
    log_sizes = {}
    for part in prepared:
        turn = server_specs[part.name].turn + 1 if part.name in server_specs else 1
        limit = part.grace if grace is None else min(grace, part.grace)
        server_specs[part.name] = ServerSpec(**{**part.__dict__, "turn": turn, "grace": limit})
        log = Path(part.log)
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        log_sizes[part.name] = log.stat().st_size if log.exists() else 0
    _write_parts(home, server_specs)
    report(f"starting {', '.join(names[:-1])}{' and ' * bool(names[1:])}{names[-1]}")
    state = home.state()
    if state is not None and state.is_alive:
        state.guardian.send(signal.SIGHUP)
    else:
        spawn_guardian(home, attached=attached)
    return log_sizes


def _port(
    home: Home, known: Mapping[str, int], name: str, nth: int, requested_ports: Mapping[str, int]
) -> int:
    if name in requested_ports:
        return ports.require_free_port(requested_ports[name], name, f"--{name}-port")
    used = frozenset(int(port) for other, port in known.items() if other not in (name, "outside"))
    return ports.choose_port(home.project, nth, known.get(name), used | frozenset(requested_ports.values()))


def _prepare(home: Home, name: str, known: Mapping[str, int], report: Progress) -> ServerSpec:
    # Imported here because every command calls `environment`, which must not load the clients of servers.
    from millstream.devstack.servers import kafka, postgres  # noqa: PLC0415

    if name == "kafka":
        return kafka.prepare(home, known["kafka"], known["controller"], report)
    if name in hdfs.SERVERS:
        return hdfs.prepare(home, name, known.get(NAME_NODE, 0), report)
    if name == S3_SERVER:
        return s3.prepare(home, known[S3_SERVER], report)
    if name in spark_cluster.SERVERS:
        return spark_cluster.prepare(home, name, known.get(SPARK_MASTER, 0))
    return postgres.prepare(home, known["postgres"], report)


def _write_parts(home: Home, parts: Mapping[str, ServerSpec]) -> None:
    home.write("parts.json", {name: part.to_json() for name, part in parts.items()})


def _stop_stack(home: Home) -> bool:
    """Stop guardian and servers, delete their state, and return whether there were any."""
    state = home.state()
    running = home.is_up()
    if state is not None:
        state.guardian.send(signal.SIGTERM)
        if not wait_for_exit([state.guardian], _STOP_TIMEOUT):
            state.guardian.send(signal.SIGKILL)
        _kill_servers(state)
    release_guardian(home.path)
    for name in ("state.json", "parts.json"):
        (home / name).unlink(missing_ok=True)
    known = home.addresses()
    if known.pop("outside", None) is not None:
        home.write("addresses.json", known)
    return running


def _kill_servers(state: StackState) -> None:
    """Kill servers that outlived their guardian, on systems where the kernel does not do that."""
    survivors: list[Identity] = [
        server_status.process
        for server_status in state.servers.values()
        if server_status.process and server_status.process.is_alive
    ]
    for process in survivors:
        with contextlib.suppress(PermissionError):
            process.send(signal.SIGKILL)
    wait_for_exit(survivors, 5.0)
