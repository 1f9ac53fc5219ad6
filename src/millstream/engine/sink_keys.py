"""Choose the key of each sink of a query, used in the sink's ledger, in events and in the batch spool."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.checkpoint import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.connectors.api.sink import Sink
    from millstream.pipeline.model import Pipeline

    Entry = dict[str, str]


def sink_keys(pipeline: Pipeline, query: str) -> list[str]:
    """Return the key of each sink of a query, in the order of the spec, such as `postgres:purchases`.

    A sink keeps the key under which its checkpoint first wrote to it, even if sinks are reordered, added or removed.
    `_millstream/record.json` contains the keys of the last start.
    """
    sinks = [entry.sink for entry in pipeline.queries[query].to]
    entries = _recorded_sinks(pipeline, query)
    keys: dict[int, str] = {}

    def assign_keys(matches: Callable[[int, Sink, Entry], bool]) -> None:
        for number, sink in enumerate(sinks):
            recorded = next(
                (record for record in entries if number not in keys and matches(number, sink, record)), None
            )
            if recorded is not None:
                entries.remove(recorded)
                keys[number] = _key_of(recorded)

    plain, located = plain_sink_keys(pipeline, query), [_located_key(pipeline, sink) for sink in sinks]
    # Two databases on one host differ only by port, and only a key contains the port.
    assign_keys(
        lambda number, sink, record: (
            sink.matches_identity(record) and _key_of(record) in (plain[number], located[number])
        )
    )
    assign_keys(lambda _, sink, record: sink.matches_identity(record))
    # A database that moved to another host, or a project that moved to another folder.
    assign_keys(lambda number, _, record: _key_of(record) == plain[number])
    used = set(keys.values())
    for number in range(len(sinks)):
        if number not in keys:
            keys[number] = plain[number] if plain[number] not in used else located[number]
    return [keys[number] for number in range(len(sinks))]


def plain_sink_keys(pipeline: Pipeline, query: str) -> list[str]:
    """Return the keys that the sinks of a query have in a fresh checkpoint.

    A path inside the project is relative to the project folder, so that a project may be moved. Sinks that would have
    the same key, such as a table of one name in two databases, get their location appended.
    """
    sinks = [entry.sink for entry in pipeline.queries[query].to]
    names = [_short_key(pipeline, sink) for sink in sinks]
    counts = Counter(names)
    keys = [
        name if counts[name] == 1 else _located_key(pipeline, sink)
        for name, sink in zip(names, sinks, strict=True)
    ]
    return _number_duplicates(keys)


def _short_key(pipeline: Pipeline, sink: Sink) -> str:
    return f"{sink.kind}:{sink.canonical_target().removeprefix(f'{pipeline.folder}/')}"


def _located_key(pipeline: Pipeline, sink: Sink) -> str:
    location = sink.location()
    return f"{_short_key(pipeline, sink)}@{location}" if location else _short_key(pipeline, sink)


def _number_duplicates(names: Sequence[str]) -> list[str]:
    """Number identical keys in the order of the spec. Such sinks have no ledger, for example the console."""
    return [
        name if (count := names[:index].count(name)) == 0 else f"{name}#{count + 1}"
        for index, name in enumerate(names)
    ]


def _recorded_sinks(pipeline: Pipeline, query: str) -> list[Entry]:
    """Return the sinks of the last start, as the checkpoint's record lists them."""
    folder = pipeline.checkpoint_folder(query)
    record = metadata.read(folder)
    return [] if record is None else list(record.sinks)


def _key_of(entry: Entry) -> str:
    return entry["key"].partition("/")[2]
