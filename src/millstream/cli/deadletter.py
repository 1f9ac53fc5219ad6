"""`millstream deadletter`: what was set aside, looked at, delivered, deleted."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from millstream.cli.letter import placed, record, text, waits, whole
from millstream.cli.project import open_project, project_options
from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.connectors.letters import Letter
    from millstream.pipeline.model import Pipeline


@click.group("deadletter", short_help="List, show, replay and purge what was set aside.")
def command() -> None:
    """What was set aside: malformed records, rows that broke an expectation, batches that a sink refused."""


@command.command("list")
@project_options
@click.option("--source", "sources", multiple=True, help="Only records of this source; may be given again.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Rows of the table; JSON has all."
)
@click.option("--json", "as_json", is_flag=True, help="Print all records as one JSON object.")
def show_all(
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    sources: tuple[str, ...],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """List records with their number, place and reason, and batches that wait; works while the pipeline runs."""
    from millstream.connectors.letters import read
    from millstream.runtime.aside import waiting

    pipeline = _pipeline(file, overrides, env_file)
    everything = read(pipeline.letters)
    letters = [
        (number, one) for number, one in enumerate(everything, 1) if not sources or one.source in sources
    ]
    batches = [] if sources else waiting(pipeline, list(pipeline.queries))
    if as_json:
        told = {
            "records": [record(one) for _, one in letters],
            "set_aside": [waits(batch) for batch in batches],
        }
        click.echo(json.dumps(told))
        return
    for number, one in letters[:limit]:
        click.echo(f"{number}  {placed(one)}  {one.reason}  {text(one.value)}")
    for batch in batches[:limit]:
        click.echo(f"{batch.query} batch {batch.batch} waits for {batch.sink}  {batch.reason}")
    counts = Counter((one.source, one.reason) for _, one in letters)
    for (source, reason), count in counts.most_common():
        click.echo(f"{source}: {count} x {reason}", err=True)
    if batches:
        click.echo(
            f"waiting for their sinks: {len(batches)}; deliver with millstream deadletter replay", err=True
        )
    if max(len(letters), len(batches)) > limit:
        click.echo(f"showing {limit} of {len(letters)} records; --limit shows more, --json all", err=True)
    if not letters and not batches:
        click.echo(f"no dead letters in {pipeline.letters.describe()}", err=True)


@command.command("show")
@click.argument("which")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
def show(
    which: str, file: Path | None, overrides: Sequence[str], env_file: Path | None, *, as_json: bool
) -> None:
    """Print all of one record: WHICH is its number in `list`, or its place as TOPIC/PARTITION@OFFSET."""
    from millstream.connectors.letters import read

    letters = read(_pipeline(file, overrides, env_file).letters)
    found = _found(letters, which)
    if as_json:
        click.echo(json.dumps(record(found)))
        return
    for line in whole(found):
        click.echo(line)


@command.command("replay")
@click.argument("query", required=False)
@project_options
@click.option("--sink", help="Only batches for this sink: its kind, or its name in `list`.")
def replay(
    query: str | None, file: Path | None, overrides: Sequence[str], env_file: Path | None, sink: str | None
) -> None:
    """Deliver the batches that sinks refused (`on_error: dead_letter`), in order, each once.

    A query must not run meanwhile; one that runs delivers them by itself, when the sink is back.
    """
    from millstream.runtime.aside import waiting
    from millstream.runtime.replaying import replay
    from millstream.runtime.run import RunOptions, chosen, lock
    from millstream.runtime.session import open_session

    pipeline = _pipeline(file, overrides, env_file)
    queries = chosen(pipeline, RunOptions(select=(query,) if query else ()))
    queries = list(dict.fromkeys(batch.query for batch in waiting(pipeline, queries, sink)))
    if not queries:
        click.echo("no batch waits for its sink", err=True)
        return
    with ExitStack() as held:
        lock(pipeline, queries, held)
        click.echo("starting Spark", err=True)
        log = pipeline.folder / ".millstream" / "logs" / "replay.log"
        spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
        held.callback(spark.stop)
        done = replay(
            spark,
            pipeline,
            queries,
            sink,
            lambda batch: click.echo(f"{batch.query}: batch {batch.batch} delivered to {batch.sink}"),
        )
    click.echo(f"delivered: {done}", err=True)


@command.command("resend")
@click.argument("which", nargs=-1)
@project_options
@click.option("--to", "topic", required=True, metavar="TOPIC", help="A topic of the broker they came from.")
@click.option("--source", help="All records of this source, in place of WHICH.")
def resend(
    which: tuple[str, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    topic: str,
    source: str | None,
) -> None:
    """Send records of topics to a TOPIC, bytes, key and headers as they came: to be mended there, or read again.

    WHICH are numbers of `list` or places TOPIC/PARTITION@OFFSET. They stay in the list. Sent twice they stand
    there twice: the header `millstream-dead-letter` has the place of each.
    """
    from millstream.connectors.letters import read

    if bool(which) == (source is not None):
        raise WrongUse(
            "resend needs to know what to send", "name records by number or place, or give --source"
        )
    pipeline = _pipeline(file, overrides, env_file)
    letters = read(pipeline.letters)
    chosen = [_found(letters, one) for one in which] or [one for one in letters if one.source == source]
    for name in dict.fromkeys(one.source for one in chosen):
        found = [one for one in chosen if one.source == name]
        entry = pipeline.sources.get(name)
        able = entry is not None and all(one.topic is not None for one in found)
        if entry is None or not able or not entry.source.resend(topic, found):
            raise WrongUse(
                f"records of '{name}' did not come from a topic, and there is nowhere to send them",
                "mend them where they came from; 'millstream deadletter show' prints them whole",
            )
        click.echo(f"{name}: {len(found)} records sent to topic '{topic}'", err=True)


@command.command("purge")
@project_options
@click.option("--before", metavar="DATE", help="Records set aside before this day or time, UTC: 2026-01-31.")
@click.option("--source", help="Records of this source or view.")
@click.option("--all", "everything", is_flag=True, help="All records.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    before: str | None,
    source: str | None,
    *,
    everything: bool,
    yes: bool,
) -> None:
    """Delete records for good; batches that wait for a sink stay. With --before and --source both must hold."""
    from millstream.connectors.letters import chosen, read

    if everything == bool(before or source):
        raise WrongUse(
            "purge needs to know what to delete", "give --before, --source or both; or --all alone"
        )
    pipeline = _pipeline(file, overrides, env_file)
    time = None if before is None else _time(before)
    found = [one for one in read(pipeline.letters) if chosen(one, time, source)]
    if not found:
        click.echo("no such record is kept", err=True)
        return
    if not yes:
        click.confirm(
            f"delete {len(found)} records in {pipeline.letters.describe()} for good?", abort=True, err=True
        )
    stay = pipeline.letters.purge(time, source)
    click.echo(f"{len(found) - stay} records deleted", err=True)
    if stay:
        click.echo(
            f"{stay} stay: they stand behind others, and {pipeline.letters.describe()} is deleted from its "
            "beginning only",
            err=True,
        )


def _pipeline(file: Path | None, overrides: Sequence[str], env_file: Path | None) -> Pipeline:
    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    return pipeline


def _found(letters: Sequence[Letter], which: str) -> Letter:
    """The letter with that number or at that place."""
    if which.isdecimal() and 0 < int(which) <= len(letters):
        return letters[int(which) - 1]
    for one in letters:
        if one.topic is not None and which == f"{one.topic}/{one.partition}@{one.offset}":
            return one
    raise WrongUse(
        f"there is no record {which}",
        f"give a number from 1 to {len(letters)}, or TOPIC/PARTITION@OFFSET"
        if letters
        else "nothing is set aside",
    )


def _time(text: str) -> datetime:
    """A day or a time; one without a zone is UTC."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"'{text}' is no date", "write it as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
