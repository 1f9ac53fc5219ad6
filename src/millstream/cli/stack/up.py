"""`millstream up`: start a local Kafka broker, Postgres server and Spark cluster, and create the spec's topics."""

from __future__ import annotations

import json
import shlex
import signal
from typing import TYPE_CHECKING, TypeVar

import click

from millstream.cli.messages import print_hint
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import find_spec, load_project, project_options
from millstream.cli.signals import handle_ending
from millstream.devstack import stack
from millstream.devstack.servers.spark_cluster import MOST_WORKERS, ClusterSize
from millstream.process.signal_safe_event import SignalSafeEvent

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from millstream.connectors.api.values.problem import RequiredResource
    from millstream.devstack.supervisor.state import Endpoints

Value = TypeVar("Value")

# Seconds between two checks of an attached `up` whether a server has ended.
_LOOK = 0.5


@click.command(name="up")
@click.argument("servers", nargs=-1, type=click.Choice(stack.ALL_SERVERS), metavar="[SERVER]...")
@project_options
@click.option(
    "-d", "--detach", is_flag=True, help="Return when the servers are ready, and leave them running."
)
@click.option("--json", "as_json", is_flag=True, help="Print the addresses as JSON.")
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Also start a Spark cluster with this many workers.",
)
@click.option(
    "--worker-cores",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of cores of each worker.",
)
@click.option(
    "--worker-memory",
    type=click.IntRange(512),
    default=1024,
    show_default=True,
    help="Heap of the executor on each worker, in MiB.",
)
@click.option(
    "--hdfs",
    is_flag=True,
    help="Also start HDFS: a name node and a data node. Any user of this machine can read and change the "
    "files.",
)
@click.option(
    "--s3",
    is_flag=True,
    help="Also start an S3-compatible server with one bucket, for tables, files and trial checkpoints.",
)
@click.option("--kafka-port", type=click.IntRange(1, 65535), help="Port of the broker.")
@click.option("--postgres-port", type=click.IntRange(1, 65535), help="Port of the database.")
@click.option("--kafka", metavar="HOST:PORT", help="Use this broker instead of starting one.")
@click.option("--postgres-url", metavar="URL", help="Use this database instead of starting one.")
def command(
    servers: tuple[str, ...],
    file: Path | None,
    overrides: tuple[str, ...],
    env_file: Path | None,
    detach: bool,
    as_json: bool,
    workers: int | None,
    worker_cores: int,
    worker_memory: int,
    hdfs: bool,
    s3: bool,
    kafka_port: int | None,
    postgres_port: int | None,
    kafka: str | None,
    postgres_url: str | None,
) -> None:
    """Start a local Kafka broker and a local Postgres server for a project, or only each SERVER that is named.

    The servers run until you press Ctrl-C. With --detach, the command returns when the servers are ready, and
    'millstream down' stops them. The servers keep their data in both cases. The command creates missing
    topics that the spec reads or writes. --workers also starts a Spark cluster, on which 'millstream run
    --master' runs the pipeline; --hdfs also starts HDFS, for checkpoints and tables; --s3 also starts an
    S3-compatible server with a bucket, for tables, files and trial checkpoints.
    """
    folder = find_spec(file).parent.resolve()
    steps = ProgressReporter()
    before = stack.environment(folder)

    def needs(endpoints: Endpoints) -> list[RequiredResource]:
        return [*_spec_needs(file, overrides, env_file, steps), *_traffic_needs(endpoints.folder, steps)]

    endpoints = stack.up(
        folder,
        needs,
        steps.show,
        attached=not detach,
        servers=servers or stack.SERVERS,
        cluster=None if workers is None else ClusterSize(workers, worker_cores, worker_memory),
        with_hdfs=hdfs,
        with_s3=s3,
        wanted_ports=_drop_unset(kafka=kafka_port, postgres=postgres_port),
        outside=_drop_unset(kafka=kafka, postgres=postgres_url),
    )
    steps.clear()
    if detach or before or not any(server.pid for server in stack.status(folder)):
        _print(endpoints, as_json=as_json)
        print_hint(f"next: {_run(endpoints)}; 'millstream down' stops the servers and keeps their data")
        return
    leave = _signalled()  # before printing, because a reader of the addresses may send the signal at once
    _print(endpoints, as_json=as_json)
    print_hint(f"next, in another terminal: {_run(endpoints)}; Ctrl-C here stops the servers")
    _stay(folder, leave)


def _spec_needs(
    file: Path | None, overrides: tuple[str, ...], env_file: Path | None, steps: ProgressReporter
) -> list[RequiredResource]:
    """Return the resources that the spec's sources and sinks need. If it has errors, say so and return none."""
    pipeline = load_project(file, overrides, env_file).pipeline
    if pipeline is None:
        steps.say("the spec has errors, so its topics are not created; 'millstream check' prints the errors")
        return []
    needs = [need for entry in pipeline.sources.values() for need in entry.source.needs()]
    sinks = (entry.sink for query in pipeline.queries.values() for entry in query.to)
    return needs + [need for sink in sinks for need in sink.needs()]


def _traffic_needs(folder: Path, steps: ProgressReporter) -> list[RequiredResource]:
    """Return the topics of the traffic.yml next to the spec."""
    from millstream.devstack.traffic.model import FILE, read_traffic
    from millstream.diagnostics.failure import MillstreamError

    if not (folder / FILE).is_file():
        return []
    try:
        return read_traffic(folder / FILE).needs()
    except MillstreamError as failure:
        steps.say(f"the topics of {FILE} are not created: {failure.what}")
        return []


def _drop_unset(**options: Value | None) -> dict[str, Value]:
    return {name: value for name, value in options.items() if value is not None}


def _run(endpoints: Endpoints) -> str:
    """Return the command that runs the pipeline, on the cluster if the stack has one."""
    return f"millstream run --master {endpoints.spark}" if endpoints.spark else "millstream run"


def _print(endpoints: Endpoints, *, as_json: bool) -> None:
    """Print the addresses to stdout, as JSON or as a shell command."""
    if as_json:
        click.echo(json.dumps(endpoints.to_json()))
    else:
        pairs = (f"{name}={shlex.quote(value)}" for name, value in endpoints.environment().items())
        click.echo(f"export {' '.join(pairs)}")


def _signalled() -> SignalSafeEvent:
    """Return an event that the first SIGINT, SIGTERM or SIGHUP sets. A second ends this process and its servers."""
    leave = SignalSafeEvent()

    def signalled(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        signal.signal(number, signal.SIG_DFL)
        leave.set()

    handle_ending(signalled)
    return leave


def _stay(folder: Path, leave: SignalSafeEvent) -> None:
    """Print each change of state of the servers until `leave` is set, then stop them."""
    printed_states: dict[str, str] = {}
    while True:
        servers = stack.status(folder)
        width = max((len(server.name) for server in servers), default=0) + 1
        for server in servers:
            if printed_states.get(server.name) != server.state:
                printed_states[server.name] = server.state
                details = f"{server.state} (exit code {server.code}, see 'millstream logs {server.name}')"
                state = details if server.code is not None else server.state
                click.echo(f"{server.name:<{width}} {server.address:<16} {state}", err=True)
        if not servers:
            click.echo("the stack was stopped by another command", err=True)
            return
        if leave.wait(_LOOK):
            break
    click.echo("stopping the servers", err=True)
    stack.down(folder)
