"""Write batches to Kafka in transactions, each with a batch's records and its ledger entry."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from millstream.checkpoint.lock import is_owned
from millstream.connectors.api.batch_ledger import LedgerEntry
from millstream.connectors.api.writer import WriteResult, conflicting_batch_error
from millstream.connectors.failpoints import hit_failpoint
from millstream.connectors.kafka import ledger
from millstream.connectors.kafka.client.admin import SILENT
from millstream.connectors.kafka.client.delivery_reports import DeliveryReports
from millstream.connectors.kafka.client.partition_ends import read_end_offsets
from millstream.connectors.kafka.client.producer_errors import (
    DENIED,
    FENCED,
    INVALID,
    LARGE,
    STOPPED,
    explain_refusal,
    restore_client_errors,
)
from millstream.connectors.kafka.writer import KafkaWriter
from millstream.diagnostics.failure import CheckpointError, MillstreamError, Outage
from millstream.spark.cluster.stored_rows import is_too_large_for_driver, read_in_portions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.kafka.sink import KafkaSink

# In milliseconds, unless the sink's option `kafka.transaction.timeout.ms` is set. Rows are in the driver's memory
# before the transaction opens, so that it lasts only as long as sending them: seconds. If a run dies in the middle,
# readers at read_committed wait at most this long.
TIMEOUT_MS = 60_000
# For a batch that the driver's memory does not hold: portions of it are read while the transaction is open. Brokers
# allow no more, unless `transaction.max.timeout.ms` is set.
LARGE_TIMEOUT_MS = 900_000
_TIMEOUT = "transaction.timeout.ms"
# A broker's leader election takes a second or two.
PATIENCE = 30.0
# Number of records handed to the client at once. Its queue has room for `_QUEUE` records.
CHUNK = 10_000
_QUEUE = 500_000
# Size of the queue in kilobytes, in addition to the rows themselves; the default is a gigabyte.
_QUEUE_KILOBYTES = 256 * 1024


class TransactionalWriter(KafkaWriter):
    """Sends each batch in one transaction of one producer in the driver.

    Opening the writer fences the producer of an earlier start and ends its transaction. Only then is the ledger read.
    A commit with a lost response is never repeated: a new producer ends the transaction, and the ledger shows the
    result.
    """

    has_checksums = True
    has_ledger = True
    _producer: Any = None
    _last: LedgerEntry | None = None
    is_large = False
    """True if the next batch is expected not to fit into the driver's memory, because the last one did not."""
    # How long a transaction of the producer may be open, in milliseconds.
    _timeout_ms = TIMEOUT_MS
    # Wall-clock time when the transaction began: the monotonic clock stops while a machine is suspended.
    _began_at = 0.0

    def __init__(self, sink: KafkaSink, identity: SinkIdentity) -> None:
        super().__init__(sink, identity)
        self._reports = DeliveryReports()
        self._is_committing = False

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Check the topic, create the ledger topic if it is missing, and fence the producer of an earlier start."""
        super().open(spark, schema)
        ledger.ensure_topic(self.sink.native(), self.sink.ledger_topic)
        self._take_over()

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:  # noqa: ARG002 - the broker is asked
        """Return the ledger entries of this query and topic; for an empty topic, only those of this writer."""
        native, owner = self.sink.native(), self.identity
        try:
            entries = ledger.visible_entries(native, self.sink.ledger_topic, owner, self.sink.target())
            own_entries = tuple(entry for entry in entries if entry.writer == owner.key)
            if entries == own_entries or self.sink.topic is None:
                return entries
            return entries if any(read_end_offsets(native, self.sink.topic).values()) else own_entries
        except KafkaException as cause:
            raise self._explain_error(cause.args[0]) from cause

    def newest(self, spark: SparkSession) -> LedgerEntry | None:  # noqa: ARG002 - the broker is asked
        """Return the last entry, waiting for open transactions that may hide it: at most a minute."""
        try:
            return ledger.last_entry(self.sink.native(), self.sink.ledger_topic, self.identity.key)
        except KafkaException as cause:
            raise self._explain_error(cause.args[0]) from cause

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the entry of the newest batch; the ledger keeps no earlier ones."""
        return self._last if self._last is not None and self._last.batch == batch_id else None

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the ledger has this batch or a later one."""
        return self._last is not None and batch_id <= self._last.batch

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Send one batch in one transaction.

        Raises `Outage` if a retry may help, also after a transaction that outlived its timeout; `CheckpointError` if
        a later run has taken over; and another `MillstreamError` if the broker rejects the records themselves.
        """
        if self.has_batch(batch_id):
            return WriteResult(rows=0, is_skipped=True)
        # Spark computes the rows before the transaction opens, so that it is open only while records are sent.
        with self._collected(self.records(frame, batch_id)) as (rows, chunks):
            return self.send(rows, chunks, batch_id)

    def send(self, rows: int, chunks: Iterable[pa.RecordBatch], batch_id: int) -> WriteResult:
        """Send a batch that the ledger does not have: its number of records, and the records in the driver's memory.

        Raises as `write` does.
        """
        hit_failpoint("kafka.before")
        self._deliver(rows, chunks, batch_id)
        self._last = LedgerEntry(self.identity.key, batch_id, 0, self.note(batch_id))
        return WriteResult(rows=rows)

    @contextlib.contextmanager
    def _collected(self, records: DataFrame) -> Iterator[tuple[int, Iterable[pa.RecordBatch]]]:
        """Yield the number of records and the records in chunks, from the executors' disks if they are many."""
        if not self.is_large:
            try:
                table = records.toArrow()
            except Exception as error:
                if not is_too_large_for_driver(error):
                    raise
                self.is_large = True
                self.reset_metrics()
            else:
                yield table.num_rows, table.to_batches(max_chunksize=CHUNK)
                return
        if self._timeout_ms < LARGE_TIMEOUT_MS and _TIMEOUT not in self.sink.producing():
            # The transaction also lasts as long as the portions are read.
            self.close()
            self._take_over()
        with read_in_portions(records, CHUNK) as stored:
            self.is_large = stored.is_large
            yield stored.count, stored.chunks

    def _deliver(self, rows: int, chunks: Iterable[pa.RecordBatch], batch_id: int) -> None:
        """Commit one transaction, and find out its result if the commit failed. Raises as `write` does."""
        try:
            with restore_client_errors():
                self._commit(rows, chunks, batch_id)
        except KafkaException as cause:
            error = self._find_reason(cause.args[0])
            if not self._resolve_outcome(error, batch_id):
                raise self._explain_failure(self._reports.find_reason(error), batch_id) from cause
        except Exception:
            # The rows could not be read, or not be made to records. Readers of committed records would wait for the
            # end of the transaction.
            self._abort()
            raise

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:
        """Build the records without replay headers, because transactions write each batch once."""
        records = super().records(frame, batch_id)
        # Spark's texts may contain any bytes, which Python would fail to decode.
        texts = [f"CAST({name} AS BINARY) AS {name}" for name in ("value", "key") if name in records.columns]
        others = [
            name for name in records.columns if name == "topic" or (name == "headers" and self.sink.headers)
        ]
        return records.selectExpr(*texts, *others)

    def close(self) -> None:
        """Close the producer; the next start ends an open transaction."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _take_over(self) -> None:
        """Create a producer that fences earlier ones, and read the last committed batch.

        Raises `CheckpointError` if another run has taken over, whose producer must not be fenced.
        """
        self.require_owner()
        default_timeout = LARGE_TIMEOUT_MS if self.is_large else TIMEOUT_MS
        self._timeout_ms = int(self.sink.producing().get(_TIMEOUT, default_timeout))
        settings = {
            **self.sink.native(),
            **self.sink.producing(),
            _TIMEOUT: str(self._timeout_ms),
            "transactional.id": f"millstream-{self.identity.key}",
            # The Java producers use this partitioner; a topic may have both kinds of writer.
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": _QUEUE,
            "queue.buffering.max.kbytes": _QUEUE_KILOBYTES,
            "on_delivery": self._reports,
            "delivery.report.only.error": True,
        }
        try:
            self._producer = Producer(settings, logger=SILENT)
            with restore_client_errors():
                self._producer.init_transactions(PATIENCE)
        except KafkaException as cause:
            raise self._explain_error(cause.args[0]) from cause
        self._last = ledger.last_entry(self.sink.native(), self.sink.ledger_topic, self.identity.key)

    def _commit(self, rows: int, chunks: Iterable[pa.RecordBatch], batch_id: int) -> None:
        self._reports.clear()
        self._is_committing = False
        self._began_at = time.time()
        self._producer.begin_transaction()
        for topic, messages in self._messages(chunks):
            self._send_all(topic, messages)
        mark = ledger.encode_entry(batch_id, rows, self.identity, self.sink.target(), self.note(batch_id))
        # The queue may be full of the batch's records.
        self._send_one(self.sink.ledger_topic, mark, self.identity.key.encode())
        hit_failpoint("kafka.sent")
        self._is_committing = True
        # This first sends queued records, which on a slow link takes most of the transaction's time.
        self._producer.commit_transaction(max(PATIENCE, self._timeout_seconds() - self._open_seconds()))
        hit_failpoint("kafka.committed")

    def _messages(self, chunks: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yield topics with records, in the order of the rows, one chunk at a time."""
        for chunk in chunks:
            columns = {name: chunk.column(name).to_pylist() for name in chunk.schema.names}
            values, keys = columns["value"], columns.get("key") or [None] * len(chunk)
            messages = [{"value": value, "key": key} for value, key in zip(values, keys, strict=True)]
            if "headers" in columns:
                for message, headers in zip(messages, columns["headers"], strict=True):
                    message["headers"] = [(header["key"], header["value"]) for header in headers]
            if self.sink.topic is not None:
                yield self.sink.topic, messages
                continue
            topics: dict[str, list[dict[str, Any]]] = {}
            for message, topic in zip(messages, columns["topic"], strict=True):
                if not topic:
                    raise MillstreamError(
                        f"a row for kafka {self.sink.target()} has no topic: column '{self.sink.topic_column}' is "
                        "NULL or empty",
                        "filter out such rows in the view, or give them a topic",
                    )
                topics.setdefault(topic, []).append(message)
            yield from topics.items()

    def _send_all(self, topic: str, messages: list[dict[str, Any]]) -> None:
        """Queue the records, waiting while the queue is full."""
        if messages and "headers" in messages[0]:
            for message in messages:
                self._send_one(topic, **message)
            return
        while messages:
            self._producer.produce_batch(topic, messages)
            queued_later = []
            for message in messages:
                if (error := message.pop("_error", None)) is not None:
                    if error.name() != "_QUEUE_FULL":
                        self._reports.keep(error, topic)
                        raise KafkaException(error)
                    queued_later.append(message)
            if messages := queued_later:
                self._producer.poll(0.01)

    def _send_one(
        self, topic: str, value: bytes, key: bytes | None, headers: list[tuple[str, bytes]] | None = None
    ) -> None:
        """Queue a record, waiting while the queue is full."""
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers)
            except BufferError:
                self._producer.poll(0.01)
            except KafkaException as cause:
                self._reports.keep(cause.args[0], topic)
                raise
            else:
                return

    def _find_reason(self, error: Any) -> Any:
        """Return the error that has stopped the transaction, if `error` says no more than that it has stopped."""
        if error.name() in STOPPED:
            try:
                with restore_client_errors():
                    self._producer.abort_transaction(PATIENCE)
            except KafkaException as reason:
                return reason.args[0]
        return error

    def _resolve_outcome(self, error: Any, batch_id: int) -> bool:
        """Return whether the transaction was committed despite the error. If not, it is aborted."""
        if error.txn_requires_abort():
            if self._abort() and error.name() == INVALID:
                # The next transaction of this producer would lack the sequence numbers of the refused records.
                self.close()
                self._take_over()
            return False
        # A record that the client refuses, as one that is too large. librdkafka can end the process if a producer is
        # destroyed in the middle of a transaction.
        if not self._is_committing and not error.fatal() and self._abort():
            return False
        if error.name() in FENCED and not self._may_have_expired():
            return False
        # The outcome is unknown. A new producer ends the transaction, and the ledger shows the result. But this run
        # must not fence a run that has replaced it.
        self.require_owner()
        self.close()
        self._take_over()
        if self._last is not None and self._last.batch > batch_id:
            raise self._replaced_error()
        if (
            self.has_batch(batch_id)
            and self._last is not None
            and self._last.note.contradicts(self.note(batch_id))
        ):
            raise conflicting_batch_error(self.identity, batch_id)
        return self.has_batch(batch_id)

    def _abort(self) -> bool:
        """Abort the transaction. Returns False if the brokers are away: its timeout or the next producer ends it."""
        try:
            with restore_client_errors():
                self._producer.abort_transaction(PATIENCE)
        except KafkaException:
            return False
        return True

    def _may_have_expired(self) -> bool:
        """Return whether the timeout may have ended the transaction while this run still owns the checkpoint."""
        return (
            self._open_seconds() >= self._timeout_seconds()
            and self.checkpoint is not None
            and is_owned(self.checkpoint)
        )

    def _timeout_seconds(self) -> float:
        """Return how long a transaction may be open, in seconds."""
        return self._timeout_ms / 1000

    def _open_seconds(self) -> float:
        """Return how long the transaction has been open, in seconds."""
        return time.time() - self._began_at

    def _explain_failure(self, error: Any, batch_id: int) -> MillstreamError:
        """Return the error for a batch that was not committed."""
        if (refusal := self._reports.explain(error, self.sink)) is not None:
            return refusal
        open_for, timeout = self._open_seconds(), self._timeout_seconds()
        if open_for < timeout or error.name() in (*LARGE, *DENIED):
            return self._explain_error(error)
        if error.name() in FENCED and not self._may_have_expired():
            return self._replaced_error()
        return Outage(
            f"kafka {self.sink.target()} did not accept batch {batch_id}: its transaction was open for "
            f"{open_for:.0f} s, and brokers abort one after {timeout:.0f} s",
            "the batch is sent again; if batches take that long to send, make them smaller "
            "(max_offsets_per_trigger of the source) or raise the sink's option kafka.transaction.timeout.ms",
        )

    def _replaced_error(self) -> CheckpointError:
        return CheckpointError(
            f"a newer run of query '{self.identity.query}' has taken over its writes to kafka {self.sink.target()}",
            "stop this run and keep the newer one; two runs of a query must not both write",
        )

    def _explain_error(self, error: Any) -> MillstreamError:
        target = f"kafka {self.sink.target()}"
        if error.name() in FENCED:
            return self._replaced_error()
        return explain_refusal(error, target) or Outage(
            f"{target} did not accept the batch: {error.str()}", "check that the brokers are running"
        )
