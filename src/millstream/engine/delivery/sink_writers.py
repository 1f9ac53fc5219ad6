"""Create the writer of a sink of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.batch_ledger import no_metadata
from millstream.connectors.api.writer import SinkIdentity
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.row_isolation_writer import create_row_isolation_writer
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.frames.user_functions import bind_functions
from millstream.pipeline.model import OnError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.connectors.api.batch_ledger import BatchMetadata
    from millstream.connectors.api.writer import Writer
    from millstream.engine.events.event_bus import EventBus
    from millstream.pipeline.model import Pipeline, SinkEntry


def create_writer(
    pipeline: Pipeline,
    query: str,
    query_id: str,
    key: str,
    entry: SinkEntry,
    events: EventBus | None,
    note: Callable[[int], BatchMetadata] = no_metadata,
) -> Writer:
    """Return the writer of one sink of a query, according to the `on_error` of its entry.

    `note` returns the metadata of a batch for the sink's ledger.
    """
    identity = SinkIdentity(pipeline.name, query, query_id, key, pipeline.queries[query].output_mode)
    if entry.on_error is OnError.DEAD_LETTER:
        return create_spooling_writer(
            pipeline, identity, entry, BatchSpool.of(pipeline, query, query_id, key), events, note=note
        )
    return _unspooled_writer(pipeline, identity, entry, events, note)


def create_spooling_writer(
    pipeline: Pipeline,
    identity: SinkIdentity,
    entry: SinkEntry,
    shelf: BatchSpool,
    events: EventBus | None,
    *,
    note: Callable[[int], BatchMetadata] = no_metadata,
) -> SpoolingWriter:
    """Return a writer that delivers spooled batches, whatever the `on_error` of the sink's entry.

    The sink's ledger receives for a spooled batch the metadata of the time when it was spooled.
    """

    def find_metadata(batch_id: int) -> BatchMetadata:
        return shelf.note(batch_id) or note(batch_id)

    spooling_writer = SpoolingWriter(
        identity, lambda: _unspooled_writer(pipeline, identity, entry, events, find_metadata), shelf, events
    )
    spooling_writer.note = note
    return spooling_writer


def _unspooled_writer(
    pipeline: Pipeline,
    identity: SinkIdentity,
    entry: SinkEntry,
    events: EventBus | None,
    note: Callable[[int], BatchMetadata],
) -> Writer:
    """Return the writer of a sink that does not spool batches."""
    sink_writer = bind_functions(entry.sink, pipeline.folder).writer(identity)
    sink_writer.note, sink_writer.checkpoint = note, pipeline.checkpoint_folder(identity.query)
    if entry.on_error is OnError.DEAD_LETTER_ROWS:
        return create_row_isolation_writer(pipeline, identity, sink_writer, events)
    return sink_writer
