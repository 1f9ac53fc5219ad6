"""Read, count and purge a Delta table of dead letters without Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from datetime import UTC
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder

from millstream.connectors.api.dead_letters import DeadLetter, Group, take_newest
from millstream.connectors.api.values.bucket_options import storage_options
from millstream.connectors.delta.commit.commit_lock import WRITING_LOCK_FILE, commit_lock
from millstream.connectors.delta.commit.delta_rs_paths import require_delta_rs
from millstream.connectors.delta.commit.maintenance import delete_absent_files
from millstream.connectors.delta.dead_letter_writer import RETRIES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from millstream.spec.location import Location

MOST_TIMES = 5000
"""Times in one condition: 50,000 overflow the stack of delta-rs, which ends the process."""


def read_rows(location: Location) -> Iterator[DeadLetter]:
    """Yield every row of the table, reading a few thousand at a time."""
    if _exists(location):
        yield from _read_dead_letters(_open(location), None)


def read_latest(location: Location, limit: int, sources: Sequence[str]) -> list[DeadLetter]:
    """Return the newest rows from the newest files; the log has the time range of each file."""
    if not _exists(location):
        return []
    table = _open(location)
    files = _file_statistics(table)
    row_count = limit
    while True:
        since, is_complete = _newest_since(files, row_count)
        dead_letters = take_newest(
            _read_dead_letters(table, _build_condition(None, sources, since), limit), limit
        )
        if len(dead_letters) >= limit or is_complete:
            return dead_letters
        # The files also contained dead letters of other sources, or rows deleted in the meantime.
        row_count *= 8


def count_by_group(location: Location, before: datetime | None) -> Counter[Group]:
    """Count dead letters by query, source and reason."""
    if not _exists(location):
        return Counter()
    where = _build_condition(before, ())
    sql = f"SELECT query, source, reason, count(*) AS n FROM letters WHERE {where or 'true'} GROUP BY 1, 2, 3"  # noqa: S608 - no text of others but quoted
    batches = _run_query(_open(location), sql)
    return Counter(
        {
            (row["query"], row["source"], row["reason"]): row["n"]
            for batch in batches
            for row in batch.to_pylist()
        }
    )


def purge(location: Location, before: datetime | None, source: str | None) -> None:
    """Delete dead letters written before a time, of a source, or all, and their files."""
    _delete(location, [_build_condition(before, () if source is None else (source,))])


def delete_sent(location: Location, source: str, written: Mapping[str, Collection[datetime]]) -> None:
    """Delete a source's records of topics that these queries wrote at these times, and their files."""
    records = f"source = {_quote(source)} AND topic IS NOT NULL"
    conditions = [
        f"{records} AND query = {_quote(query)} AND at IN ({', '.join(map(_time_literal, portion))})"
        for query, times in written.items()
        for portion in _divide(sorted(times))
    ]
    _delete(location, conditions)


def _delete(location: Location, conditions: Sequence[str | None]) -> None:
    if not conditions or not _exists(location):
        return
    require_delta_rs(location, appends=True)
    with commit_lock(location.local, name=WRITING_LOCK_FILE), commit_lock(location.local):
        table = _open(location)
        for condition in conditions:
            table.delete(condition, commit_properties=CommitProperties(max_commit_retries=RETRIES))
        # Only files deleted in the log: a batch's files that are being written are in no log yet.
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        if location.local is not None:
            # With both locks nobody writes one now. The others are those of killed processes.
            delete_absent_files(table, location.local, 0)


def _exists(location: Location) -> bool:
    require_delta_rs(location)
    return DeltaTable.is_deltatable(str(location), storage_options(location))


def _open(location: Location) -> DeltaTable:
    return DeltaTable(str(location), storage_options=storage_options(location))


def _read_dead_letters(
    table: DeltaTable, where: str | None, limit: int | None = None
) -> Iterator[DeadLetter]:
    """Yield rows as dead letters; rows of older versions have fewer columns."""
    available_names = {field.name for field in table.schema().fields}
    names = ", ".join(f'"{field.name}"' for field in fields(DeadLetter) if field.name in available_names)
    order_and_limit = "" if limit is None else f" ORDER BY at DESC LIMIT {int(limit)}"
    sql = f"SELECT {names} FROM letters WHERE {where or 'true'}{order_and_limit}"  # noqa: S608 - our own column names
    for batch in _run_query(table, sql):
        yield from (DeadLetter(**row) for row in batch.to_pylist())


def _run_query(table: DeltaTable, sql: str) -> Iterator[pa.RecordBatch]:
    for batch in QueryBuilder().register("letters", table).execute(sql):
        yield pa.record_batch(batch)


def _file_statistics(table: DeltaTable) -> list[tuple[Any, Any, int]]:
    """Return each file's oldest and newest time, None if the log has no statistics, and its number of rows."""
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [
        (action.get("min.at"), action.get("max.at"), action.get("num_records") or 0) for action in actions
    ]


def _newest_since(files: list[tuple[Any, Any, int]], rows: int) -> tuple[datetime | None, bool]:
    """Return the time from which this many newest rows start; or None and True if all files are needed."""
    if any(oldest is None or last is None for oldest, last, _ in files):
        return None, True
    since = None
    for oldest, _, count in sorted(files, key=lambda file: file[1], reverse=True):
        if rows <= 0:
            return since, False
        since = oldest if since is None else min(since, oldest)
        rows -= count
    return None, True


def _build_condition(
    before: datetime | None, sources: Sequence[str], since: datetime | None = None
) -> str | None:
    conditions = []
    for limit, operator in ((before, "<"), (since, ">=")):
        if limit is not None:
            conditions.append(f"at {operator} {_time_literal(limit)}")
    if sources:
        conditions.append(f"source IN ({', '.join(map(_quote, sources))})")
    return " AND ".join(conditions) or None


def _time_literal(time: datetime) -> str:
    # A plain TIMESTAMP has nanoseconds, for which the log's statistics are not used.
    text = f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    return f"arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _divide(times: Sequence[datetime]) -> Iterator[Sequence[datetime]]:
    return (times[start : start + MOST_TIMES] for start in range(0, len(times), MOST_TIMES))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
