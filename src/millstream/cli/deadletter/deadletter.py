"""`millstream deadletter`: inspect, replay and delete dead letters and spooled batches."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from millstream.cli.cluster import settings_without_cluster
from millstream.cli.deadletter.resending import send_portions
from millstream.cli.deadletter.selection import find_dead_letter, parse_time
from millstream.cli.deadletter.text import (
    DEAD_LETTER_COLUMNS,
    dead_letter_json,
    dead_letter_rows,
    format_dead_letter,
    spooled_batch_json,
)
from millstream.cli.messages import confirm_deletion, print_hint
from millstream.cli.project import open_project, project_options
from millstream.cli.table import format_table, terminal_width
from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.snippet import escape_control

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.connectors.api.dead_letters import DeadLetterStore
    from millstream.connectors.api.writer import WriteResult
    from millstream.engine.delivery.batch_spool import SpooledBatch
    from millstream.pipeline.model import Pipeline

# Number of records that `resend` reads and sends at a time.
PORTION = 1000


@click.group("deadletter", short_help="Handle rejected records and batches that a sink refused.")
def command() -> None:
    """Handle dead letters (rejected records) and spooled batches (whole batches that a sink refused)."""


@command.command("list")
@project_options
@click.option("--source", "sources", multiple=True, help="Only dead letters of this source; can be repeated.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Print this number of the newest dead letters; --json prints all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def show_all(
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    sources: tuple[str, ...],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """List dead letters and spooled batches.

    Prints the newest dead letters. Each has a number, counted from the oldest; with --source, they have no numbers.
    --json prints all dead letters, in no particular order. You can use the command while the pipeline runs.
    """
    from millstream.connectors.api.dead_letters import count_records
    from millstream.engine.delivery.batch_spool import list_orphaned_batches, list_spooled_batches
    from millstream.engine.delivery.undelivered import orphan_warnings

    pipeline = _pipeline(file, overrides, env_file)
    store = pipeline.letters
    batches = (
        []
        if sources
        else [*list_spooled_batches(pipeline, list(pipeline.queries)), *list_orphaned_batches(pipeline)]
    )
    if as_json:
        _print_all(store, sources, batches)
        return
    groups = store.counts()
    counts = {group: n for group, n in count_records(groups).items() if not sources or group[0] in sources}
    # The summary is what most readers want, so it comes before the records.
    for (source, reason), count in Counter(counts).most_common():
        click.echo(f"{source}: {count} x {escape_control(reason)}", err=True)
    newest = store.latest(limit, sources)
    if newest:
        rows = list(dead_letter_rows(newest, 0 if sources else groups.total()))
        click.echo(format_table(DEAD_LETTER_COLUMNS, rows, width=terminal_width()), nl=False)
    for batch in batches[:limit]:
        reason = escape_control(batch.reason)
        click.echo(f"{batch.query} batch {batch.batch} waits for {batch.sink}  {reason}")
    if batches:
        click.echo(
            f"spooled batches: {len(batches)}; deliver them with millstream deadletter replay", err=True
        )
    for warning in () if sources else orphan_warnings(pipeline):
        click.echo(warning, err=True)
    if sum(counts.values()) > limit:
        click.echo(
            f"newest {limit} of {sum(counts.values())} records; --limit shows more, --json all", err=True
        )
    if len(batches) > limit:
        click.echo(
            f"first {limit} of {len(batches)} spooled batches; --limit shows more, --json all", err=True
        )
    if not counts and not batches:
        click.echo(f"no dead letters in {store.describe()}", err=True)


def _print_all(store: DeadLetterStore, sources: Sequence[str], batches: Sequence[SpooledBatch]) -> None:
    """Print one JSON object while reading, because there may be more records than fit into memory."""
    from millstream.connectors.api.dead_letters import skip_duplicates

    click.echo('{"records": [', nl=False)
    between = ""
    for letter in skip_duplicates(store.all(), store.counts()):
        if not sources or letter.source in sources:
            click.echo(between + json.dumps(dead_letter_json(letter)), nl=False)
            between = ", "
    click.echo(f'], "set_aside": {json.dumps([spooled_batch_json(batch) for batch in batches])}}}')


@command.command("show")
@click.argument("which")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(
    which: str, file: Path | None, overrides: Sequence[str], env_file: Path | None, *, as_json: bool
) -> None:
    """Print one dead letter in full.

    WHICH is the number that `list` prints, or the original position of the record as TOPIC/PARTITION@OFFSET.
    """
    letter = find_dead_letter(_pipeline(file, overrides, env_file).letters, which)
    if as_json:
        click.echo(json.dumps(dead_letter_json(letter)))
        return
    for line in format_dead_letter(letter):
        click.echo(line)


@command.command("replay")
@click.argument("query", required=False)
@project_options
@click.option("--sink", help="Only batches for this sink: its kind, or the name that `list` prints.")
def replay(
    query: str | None, file: Path | None, overrides: Sequence[str], env_file: Path | None, sink: str | None
) -> None:
    """Deliver spooled batches to their sinks.

    A batch is spooled if a sink with `on_error: dead_letter` refuses it. Batches are delivered in order and exactly
    once. Use this command while the query is stopped; a running query delivers its spooled batches itself as soon
    as the sink accepts them. If `on_error` is now `dead_letter_rows`, rows that the sink refuses become dead letters.
    """
    from millstream.engine.delivery.batch_spool import list_spooled_batches
    from millstream.engine.delivery.spool_replay import replay
    from millstream.engine.delivery.undelivered import check_replay, orphan_warnings
    from millstream.engine.recovery.jvm_lock import lock_in_jvm
    from millstream.engine.run import RunOptions, choose_queries, lock_checkpoints
    from millstream.spark.session import open_session, stop_session

    pipeline = _pipeline(file, overrides, env_file)
    for warning in orphan_warnings(pipeline):
        click.echo(warning, err=True)
    queries = choose_queries(pipeline, RunOptions(select=(query,) if query else ()))
    batches = list_spooled_batches(pipeline, queries, sink)
    check_replay(pipeline, batches)
    queries = list(dict.fromkeys(batch.query for batch in batches))
    if not queries:
        click.echo("there are no spooled batches", err=True)
        return
    with ExitStack() as stack:
        lock_checkpoints(pipeline, queries, stack)
        print_hint("starting Spark")
        log = pipeline.folder / ".millstream" / "logs" / "replay.log"
        spark = open_session(pipeline.name, settings_without_cluster(pipeline), log=log)
        stack.callback(stop_session, spark)
        stack.enter_context(lock_in_jvm(spark, pipeline, queries))
        count = replay(spark, pipeline, queries, sink, _print_delivery)
    click.echo(f"delivered: {count}", err=True)


def _print_delivery(batch: SpooledBatch, result: WriteResult) -> None:
    """Print whether a batch was delivered, or was in the sink already."""
    if result.is_skipped:
        click.echo(f"{batch.query}: batch {batch.batch} was in {batch.sink} already")
    else:
        click.echo(f"{batch.query}: batch {batch.batch} delivered to {batch.sink}")


@command.command("delete", short_help="Delete spooled batches of a query permanently.")
@click.argument("query")
@project_options
@click.option("--sink", help="Only batches for this sink: its kind, or the name that `list` prints.")
@click.option("--batch", "number", type=click.IntRange(0), help="Only the batch with this batch id.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(
    query: str,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    sink: str | None,
    number: int | None,
    *,
    yes: bool,
) -> None:
    """Delete spooled batches of a query permanently; for dead letters use `purge`.

    Use this command for batches that you no longer need, or whose query or sink is no longer in the spec. Their rows
    are not written to the sink; `millstream backfill` can recompute them if the sources still have the data.
    """
    from millstream.checkpoint import adoption_log
    from millstream.checkpoint.lock import CheckpointLock
    from millstream.checkpoint.remote.path import RemotePath
    from millstream.engine.delivery import batch_spool
    from millstream.engine.events.event_bus import now
    from millstream.engine.run import lock_checkpoints

    pipeline = _pipeline(file, overrides, env_file)

    def list_named_batches() -> list[SpooledBatch]:
        spooled = (
            batch_spool.list_spooled_batches(pipeline, [query])
            if query in pipeline.queries
            else batch_spool.list_orphaned_batches(pipeline)
        )
        return [
            batch
            for batch in spooled
            if batch.query == query and batch_spool.is_for_sink(batch, sink) and number in (None, batch.batch)
        ]

    candidates = list_named_batches()
    if not candidates:
        click.echo("there is no such spooled batch", err=True)
        return
    with ExitStack() as stack:
        # A run delivers spooled batches, so lock out runs while deleting.
        if query in pipeline.queries:
            lock_checkpoints(pipeline, [query], stack)
        else:
            # A spool on HDFS is changed under the lease of its checkpoint, even if that was deleted.
            for folder, spool in {
                (batch.checkpoint, batch.folder.parents[2])
                for batch in candidates
                if isinstance(batch.checkpoint, RemotePath) or batch.checkpoint.is_dir()
            }:
                stack.enter_context(CheckpointLock(folder, f"{pipeline.name}.{query} deadletter", [spool]))
        batches = list_named_batches()
        if not yes:
            rows = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
            sinks = ", ".join(dict.fromkeys(batch.sink for batch in batches))
            confirm_deletion(f"delete {rows} of query '{query}' for {sinks} permanently?")
        for batch in batches:
            checkpoint = pipeline.checkpoint_folder(query) if query in pipeline.queries else batch.checkpoint
            if checkpoint.is_dir():
                # Otherwise the next start reports the batch as missing in the sink.
                key = f"{batch.query_id}/{batch.sink}"
                adoption_log.add_missing(checkpoint, batch.sink, key, [batch.batch], now())
            batch.forget()
            click.echo(f"{batch.query}: batch {batch.batch} for {batch.sink} deleted")
    click.echo(f"deleted: {len(batches)}", err=True)


@command.command("resend")
@click.argument("which", nargs=-1)
@project_options
@click.option("--to", "topic", required=True, metavar="TOPIC", help="Target topic, on the original broker.")
@click.option("--source", help="Send all dead letters of this source, instead of WHICH.")
@click.option("--delete", is_flag=True, help="With --source: then delete the dead letters that were sent.")
def resend(
    which: tuple[str, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    topic: str,
    source: str | None,
    *,
    delete: bool,
) -> None:
    """Send dead letters to a Kafka topic.

    Only records that came from a topic can be sent; each keeps its value, key and headers. Another program can then
    correct them, or the pipeline can read them again. WHICH are the numbers that `list` prints, or original positions
    as TOPIC/PARTITION@OFFSET. Without --delete, the dead letters stay in the list: if you send one twice, the topic
    contains it twice. --delete spares those that a running pipeline has stored in the meantime.
    The header `millstream-dead-letter` contains the original position.
    """
    from millstream.connectors.api.dead_letters import read_once

    if bool(which) == (source is not None):
        raise InvalidInput(
            "resend needs the records to send", "name records by number or position, or pass --source"
        )
    if delete and source is None:
        raise InvalidInput("--delete needs --source", "pass --source instead of single records")
    pipeline = _pipeline(file, overrides, env_file)
    written: defaultdict[str, set[datetime]] = defaultdict(set)
    sent_counts: Counter[str] = Counter()
    if which:
        # Records that are named are checked together, so that none is sent if one of them cannot be.
        chosen = [find_dead_letter(pipeline.letters, item) for item in which]
        send_portions(pipeline, [chosen], topic, sent_counts)
    else:
        letters = read_once(pipeline.letters, source or "", datetime.now(UTC), written)
        portions = iter(lambda: list(islice(letters, PORTION)), [])
        send_portions(pipeline, portions, topic, sent_counts)
    if delete and source and sent_counts:
        _tell_remaining(pipeline, pipeline.letters.delete_sent(source, written))


@command.command("purge", short_help="Delete dead letters permanently.")
@project_options
@click.option("--before", metavar="DATE", help="Only if rejected before this UTC time, such as 2026-01-31.")
@click.option("--source", help="Only dead letters of this source or view.")
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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
    """Delete dead letters permanently; for spooled batches use `delete`.

    If both --before and --source are given, only dead letters that match both are deleted.
    """
    from millstream.connectors.api.dead_letters import count_records

    if everything == bool(before or source):
        raise InvalidInput(
            "purge needs a selection of the dead letters to delete",
            "pass --before, --source or both, or pass --all",
        )
    pipeline = _pipeline(file, overrides, env_file)
    # Not those that a running pipeline stores while the question waits for its answer.
    now = datetime.now(UTC)
    time = now if before is None else min(now, parse_time(before))
    counts = count_records(pipeline.letters.counts(time))
    matching = sum(count for (name, _), count in counts.items() if source in (None, name))
    if not matching:
        click.echo("there are no such records", err=True)
        return
    if not yes:
        confirm_deletion(f"delete {matching} records in {pipeline.letters.describe()} permanently?")
    remaining = pipeline.letters.purge(time, source)
    click.echo(f"{matching - remaining} records deleted", err=True)
    _tell_remaining(pipeline, remaining)


def _tell_remaining(pipeline: Pipeline, remaining: int) -> None:
    if remaining:
        click.echo(
            f"{remaining} records were kept, because {pipeline.letters.describe()} can only be deleted from its "
            "beginning and other records come before them",
            err=True,
        )


def _pipeline(file: Path | None, overrides: Sequence[str], env_file: Path | None) -> Pipeline:
    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    return pipeline
