"""`millstream traffic`: send generated events to the local stack."""

from __future__ import annotations

import json
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.environment import environment
from millstream.cli.project import find_spec, project_options
from millstream.cli.steps import Steps
from millstream.diagnostics.failure import NotReady, WrongUse
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from types import FrameType

    from millstream.devstack.traffic import Summary


@click.command(name="traffic")
@project_options
@click.option(
    "--traffic",
    "declared",
    type=click.Path(path_type=Path),
    help="The file. [default: traffic.yml beside the spec]",
)
@click.option("--rows", type=click.IntRange(1), help="Send that many records as fast as they go, and end.")
@click.option("--for", "lasting", metavar="TIME", help="End after that long, such as 60s.")
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), help="Events a second, in place of the file's."
)
@click.option("--seed", type=int, help="In place of the file's.")
@click.option("--start", metavar="ISO", help="Event time of the first event, with a zone. [default: now]")
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, help="Seconds of event time a second."
)
@click.option(
    "--journal", type=click.Path(path_type=Path), help="Write where each record stands and what it is."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
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
) -> None:
    """Send the events that traffic.yml declares, at their pace until Ctrl-C, or --rows of them at once.

    The same file, seed and start give the same bytes in the same order.
    """
    # Here and not above: they load the Kafka client.
    from millstream.devstack.traffic import Plan, Sender, send
    from millstream.devstack.traffic_model import FILE, read

    folder = find_spec(file).parent
    path = declared or folder / FILE
    if not path.is_file():
        raise WrongUse(f"there is no file {path}", "name one with --traffic")
    traffic = read(path)
    if rate is not None:
        traffic = traffic.at_rate(rate)
    seconds = None if lasting is None else _duration(lasting)
    plan = Plan.of(traffic, seed=seed, start=_time(start), rows=rows, seconds=seconds, speed=speed)
    kafka = environment(folder, env_file).get("KAFKA")
    if not kafka:
        raise NotReady("no local stack is running and KAFKA is not set", "start one: millstream up")
    stop, steps = threading.Event(), Steps()

    def signalled(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signalled)
    steps.tell(f"sending to {kafka}")
    summary = send(Sender(traffic, plan, kafka), stop, journal, steps.tell)
    steps.done()
    click.echo(json.dumps(summary.to_json()) if as_json else _table(summary))
    click.echo("next: millstream run", err=True)


def _table(summary: Summary) -> str:
    """The summary for a person."""
    head = f"{'topic':<20}{'sent':>12}{'good':>12}{'duplicates':>12}{'late':>10}{'malformed':>11}"
    lines = [
        f"{name:<20}{one.sent:>12,}{one.good:>12,}{one.duplicate:>12,}{one.late:>10,}{one.malformed:>11,}"
        for name, one in summary.topics.items()
    ]
    total = sum(one.sent for one in summary.topics.values())
    rate = total / summary.seconds if summary.seconds else 0.0
    took = f"{total:,} records in {summary.seconds:.1f} s ({rate:,.0f} a second)"
    last = f"{took}, seed {summary.seed}, start {summary.start}"
    return "\n".join([head, *lines, last])


def _duration(text: str) -> float:
    try:
        return Duration(text).seconds
    except ValueError as wrong:
        raise WrongUse(f"--for: {wrong}", "write 60s or 5m") from None


def _time(text: str | None) -> datetime | None:
    if text is None or text == "now":
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"--start: '{text}' is not a time", "write 2026-01-01T12:00:00Z") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
