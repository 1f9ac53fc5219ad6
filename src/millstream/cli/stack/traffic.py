"""`millstream traffic`: send generated events to the local stack."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import find_spec, project_options
from millstream.cli.signals import handle_ending
from millstream.cli.variables import spec_environment
from millstream.diagnostics.failure import InvalidInput, NotReady
from millstream.process.signal_safe_event import SignalSafeEvent
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from types import FrameType

    from millstream.devstack.traffic.send import Summary


# Seconds that attached traffic may wait for the broker after its parent process has ended.
_FAREWELL = 2.0


@click.command(name="traffic")
@project_options
@click.option(
    "--traffic",
    "declared",
    type=click.Path(path_type=Path),
    help="File that declares the traffic. [default: traffic.yml next to the spec]",
)
@click.option("--rows", type=click.IntRange(1), help="Send this many records as fast as possible, then stop.")
@click.option("--for", "lasting", metavar="TIME", help="Stop after this time, such as 60s.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="Events per second of event time, instead of the rate in the file; --speed multiplies this rate.",
)
@click.option("--seed", type=int, help="Random seed, instead of the one in the file.")
@click.option("--start", metavar="ISO", help="Event time of the first event, with a zone. [default: now]")
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Seconds of event time per second of real time; 60 sends an hour of events in a minute.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    help="For each record, write a JSON line to this file, with the record's topic, partition, offset and times, "
    "and whether it is good, a duplicate, late or malformed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option(
    "--attached", is_flag=True, help="For use by other programs: stop when standard input is closed."
)
def command(
    file: Path | None,
    overrides: tuple[str, ...],  # noqa: ARG001 - every command about a project takes it
    env_file: Path | None,
    declared: Path | None,
    rows: int | None,
    lasting: str | None,
    rate: float | None,
    seed: int | None,
    start: str | None,
    speed: float,
    journal: Path | None,
    as_json: bool,
    attached: bool,
) -> None:
    """Send the events that traffic.yml declares to the local stack, until Ctrl-C.

    The events are sent at the rate in traffic.yml; with --rows N, N events are sent as fast as possible. The
    same file, --seed and --start always produce the same events in the same order.
    """
    # Imported here because these modules load the Kafka client.
    from millstream.devstack.traffic.model import FILE, read_traffic
    from millstream.devstack.traffic.send import Sender, SendPlan, send_traffic

    folder = find_spec(file).parent
    path = declared or folder / FILE
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", "name one with --traffic")
    traffic = read_traffic(path)
    if rate is not None:
        traffic = traffic.at_rate(rate)
    if rows is not None and (lasting is not None or speed != 1.0):
        raise InvalidInput(
            "--rows sends as fast as possible, and cannot be combined with --for or --speed", "leave them out"
        )
    seconds = None if lasting is None else _duration(lasting)
    plan = SendPlan.of(traffic, seed=seed, start=_time(start), rows=rows, seconds=seconds, speed=speed)
    kafka = spec_environment(folder, env_file).get("KAFKA")
    if not kafka:
        raise NotReady(
            "no local stack is running and KAFKA is not set",
            "start the stack with 'millstream up', or set KAFKA",
        )
    stop, steps = SignalSafeEvent(), ProgressReporter()
    if attached:
        threading.Thread(target=_watch_starter, args=(stop,), name="starter", daemon=True).start()

    def signalled(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    handle_ending(signalled)
    steps.show(f"sending to {kafka}")
    summary = send_traffic(Sender(traffic, plan, kafka), stop, journal, steps.show)
    steps.clear()
    click.echo(json.dumps(summary.to_json()) if as_json else _table(summary))
    print_hint("next: millstream run")


def _watch_starter(stop: SignalSafeEvent) -> None:
    """Stop when standard input is closed, and exit soon after in any case, because the parent is gone."""
    while os.read(0, 1024):
        pass
    stop.set()
    # The traffic ends the process itself, unless its broker does not answer.
    time.sleep(_FAREWELL)
    os._exit(1)


def _table(summary: Summary) -> str:
    """Format the summary as a table."""
    header = f"{'topic':<20}{'sent':>12}{'good':>12}{'duplicates':>12}{'late':>10}{'malformed':>11}"
    lines = [
        f"{name:<20}{topic.total:>12,}{topic.good:>12,}{topic.duplicate:>12,}{topic.late:>10,}{topic.malformed:>11,}"
        for name, topic in summary.topics.items()
    ]
    total = sum(topic.total for topic in summary.topics.values())
    rate = total / summary.seconds if summary.seconds else 0.0
    speed = f"{total:,} records in {summary.seconds:.1f} s ({rate:,.0f} per second)"
    footer = f"{speed}, seed {summary.seed}, start {summary.start}"
    return "\n".join([header, *lines, footer])


def _duration(text: str) -> float:
    try:
        return Duration(text).seconds
    except ValueError as error:
        raise InvalidInput(f"--for: {error}", "write 60s or 5m") from None


def _time(text: str | None) -> datetime | None:
    if text is None or text == "now":
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"--start: '{text}' is not a time", "write 2026-01-01T12:00:00Z") from None
    if time.tzinfo is None:
        raise InvalidInput(f"--start: '{text}' has no time zone", f"for UTC write {time.isoformat()}Z")
    return time
