"""`millstream up`: start a local Kafka broker and Postgres server, with the topics that the spec needs."""

from __future__ import annotations

import json
import shlex
import signal
import threading
from typing import TYPE_CHECKING, TypeVar

import click

from millstream.cli.project import find_spec, load_project, project_options
from millstream.cli.steps import Steps
from millstream.devstack import stack

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from millstream.connectors.source import Need
    from millstream.devstack.state import Endpoints

Value = TypeVar("Value")

# How often an attached `up` looks whether a server has ended.
_LOOK = 0.5


@click.command(name="up")
@click.argument("servers", nargs=-1, type=click.Choice(stack.SERVERS), metavar="[kafka] [postgres]")
@project_options
@click.option("-d", "--detach", is_flag=True, help="Return once the servers answer, and leave them running.")
@click.option("--json", "as_json", is_flag=True, help="Print the addresses as JSON.")
@click.option("--kafka-port", type=click.IntRange(1, 65535), help="The broker's port.")
@click.option("--postgres-port", type=click.IntRange(1, 65535), help="The database's port.")
@click.option("--kafka", metavar="HOST:PORT", help="Use this broker and start none.")
@click.option("--postgres-url", metavar="URL", help="Use this database and start none.")
def command(
    servers: tuple[str, ...],
    file: Path | None,
    overrides: tuple[str, ...],
    env_file: Path | None,
    detach: bool,
    as_json: bool,
    kafka_port: int | None,
    postgres_port: int | None,
    kafka: str | None,
    postgres_url: str | None,
) -> None:
    """Start a local Kafka broker and Postgres server, or one of them, for a project.

    Stays until Ctrl-C and stops them then; with --detach returns once both answer, and 'millstream down'
    stops them. Data is kept either way. Topics that the spec needs are made.
    """
    folder = find_spec(file).parent.resolve()
    steps = Steps()
    before = stack.environment(folder)

    def needs(endpoints: Endpoints) -> list[Need]:
        return [*_spec_needs(file, overrides, env_file, steps), *_traffic_needs(endpoints.folder, steps)]

    endpoints = stack.up(
        folder,
        needs,
        steps.tell,
        attached=not detach,
        servers=servers or stack.SERVERS,
        wanted_ports=_given(kafka=kafka_port, postgres=postgres_port),
        outside=_given(kafka=kafka, postgres=postgres_url),
    )
    steps.done()
    if detach or before or not any(one.pid for one in stack.status(folder)):
        _print(endpoints, as_json=as_json)
        click.echo("next: millstream run; 'millstream down' stops the servers and keeps their data", err=True)
        return
    leave = _signalled()  # before the addresses are out: who reads them may stop this at once
    _print(endpoints, as_json=as_json)
    click.echo("next, in another terminal: millstream run; Ctrl-C here stops the servers", err=True)
    _stay(folder, leave)


def _spec_needs(
    file: Path | None, overrides: tuple[str, ...], env_file: Path | None, steps: Steps
) -> list[Need]:
    """What the spec's sources and sinks need outside; nothing, and a word about it, when it has errors."""
    pipeline = load_project(file, overrides, env_file).pipeline
    if pipeline is None:
        steps.say("the spec has errors, so no topics are made for it; 'millstream check' names them")
        return []
    found = [need for entry in pipeline.sources.values() for need in entry.source.needs()]
    sinks = (entry.sink for query in pipeline.queries.values() for entry in query.to)
    return found + [need for sink in sinks for need in sink.needs()]


def _traffic_needs(folder: Path, steps: Steps) -> list[Need]:
    """Topics of the traffic that is declared beside the spec."""
    from millstream.devstack.traffic_model import FILE, read
    from millstream.diagnostics.failure import MillstreamError

    if not (folder / FILE).is_file():
        return []
    try:
        return read(folder / FILE).needs()
    except MillstreamError as wrong:
        steps.say(f"no topics are made for {FILE}: {wrong.what}")
        return []


def _given(**options: Value | None) -> dict[str, Value]:
    return {name: value for name, value in options.items() if value is not None}


def _print(endpoints: Endpoints, *, as_json: bool) -> None:
    """The addresses to stdout, as JSON or as a line that a shell takes."""
    if as_json:
        names = {"kafka": endpoints.kafka, "postgres": endpoints.postgres, "folder": str(endpoints.folder)}
        click.echo(json.dumps(names))
    else:
        pairs = (f"{name}={shlex.quote(value)}" for name, value in endpoints.environment().items())
        click.echo(f"export {' '.join(pairs)}")


def _signalled() -> threading.Event:
    """Set by the first SIGINT or SIGTERM; a second ends this process at once, and the servers with it."""
    leave = threading.Event()

    def signalled(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        signal.signal(number, signal.SIG_DFL)
        leave.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signalled)
    return leave


def _stay(folder: Path, leave: threading.Event) -> None:
    """Say how the servers fare until it is time to leave, then stop them."""
    shown: dict[str, str] = {}
    while True:
        seen = stack.status(folder)
        for one in seen:
            if shown.get(one.name) != one.state:
                shown[one.name] = one.state
                how = f"{one.state} (exit code {one.code}, see 'millstream logs {one.name}')"
                click.echo(
                    f"{one.name:<9} {one.address:<16} {how if one.code is not None else one.state}", err=True
                )
        if not seen:
            click.echo("the stack was stopped from elsewhere", err=True)
            return
        if leave.wait(_LOOK):
            break
    click.echo("stopping the servers", err=True)
    stack.down(folder)
