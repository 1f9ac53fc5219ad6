"""Writes batches to Kafka in transactions: a batch's records and the mark that it is written, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from millstream.connectors.failpoints import reach
from millstream.connectors.kafka import ledger
from millstream.connectors.kafka.admin import SILENT
from millstream.connectors.kafka.ends import ends
from millstream.connectors.kafka.writer import KafkaWriter
from millstream.connectors.remembered import Entry
from millstream.connectors.sink import Written
from millstream.diagnostics.failure import CannotGoOn, MillstreamError, Outage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Rows are in the driver's memory before the transaction opens, so it lasts as long as sending them: seconds.
# Readers at read_committed wait that long, at the most, for a run that died in the middle.
TIMEOUT = 60.0
# Waits of a second or two are a broker's election of leaders.
PATIENCE = 30.0
# So many records are handed to the client at once; its queue holds half a million.
CHUNK = 10_000
_QUEUE = 500_000
# By the names of librdkafka's errors: what it says to a producer whose place was taken, of rows, and of rights.
_FENCED = ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
_LARGE = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_DENIED = (
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
)


class TransactionalWriter(KafkaWriter):
    """Sends each batch in one transaction of one producer, in the driver.

    Opening it fences the producer of an earlier start and ends that one's transaction; only then is the ledger
    read. A commit whose answer was lost is never repeated: a fresh producer ends it, and the ledger decides.
    """

    sums = True
    _producer: Any = None
    _last: Entry | None = None

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """As the writer on Spark's producer; also makes the ledger's topic and takes over from an earlier start."""
        super().open(spark, schema)
        ledger.ensure(self.sink.native(), self.sink.ledger_topic)
        self._take_over()

    def remembered(self, spark: SparkSession) -> tuple[Entry, ...]:  # noqa: ARG002 - the broker is asked
        """What the ledger says of this query and topic; of a topic without records only what is this writer's."""
        native, owner = self.sink.native(), self.identity
        try:
            found = ledger.entries(
                native, self.sink.ledger_topic, owner.pipeline, owner.query, self.sink.target()
            )
            own = tuple(one for one in found if one.writer == owner.key)
            if found == own or self.sink.topic is None:
                return found
            return found if any(ends(native, self.sink.topic).values()) else own
        except KafkaException as cause:
            raise self._explained(cause.args[0]) from cause

    def entry(self, batch_id: int) -> Entry | None:
        """What the ledger says of the newest batch: it forgets those before."""
        return self._last if self._last is not None and self._last.batch == batch_id else None

    def holds(self, batch_id: int) -> bool:
        """Is this batch, or a later one, in the ledger?"""
        return self._last is not None and batch_id <= self._last.batch

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Send one batch in one transaction.

        Raises `Outage` when trying again may help, `CannotGoOn` when a later run has taken over, and another
        `MillstreamError` when the broker refuses the records themselves.
        """
        if self.holds(batch_id):
            return Written(rows=0, skipped=True)
        # Spark's work is done before the transaction opens: it stays open for no longer than sending takes.
        table = self.records(frame, batch_id).toArrow()
        reach("kafka.before")
        try:
            self._commit(table, batch_id)
        except KafkaException as cause:
            if not self._settled(cause, batch_id):
                raise self._explained(cause.args[0]) from cause
        self._last = Entry(self.identity.key, batch_id, 0, self.note(batch_id))
        return Written(rows=table.num_rows)

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:
        """As in the base, but no header tells a replay: there is none."""
        made = super().records(frame, batch_id)
        return made if self.sink.headers else made.drop("headers")

    def close(self) -> None:
        """Let the producer go; a transaction that is open is ended by the next start."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _take_over(self) -> None:
        """A producer that no earlier one can disturb, and the last batch that was committed."""
        settings = {
            **self.sink.native(),
            **self.sink.producing(),
            "transactional.id": f"millstream-{self.identity.key}",
            "transaction.timeout.ms": int(TIMEOUT * 1000),
            # Java's producers choose a key's partition so; a topic may have both kinds of writer.
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": _QUEUE,
        }
        try:
            self._producer = Producer(settings, logger=SILENT)
            self._producer.init_transactions(PATIENCE)
        except KafkaException as cause:
            raise self._explained(cause.args[0]) from cause
        self._last = ledger.last(self.sink.native(), self.sink.ledger_topic, self.identity.key)

    def _commit(self, table: Any, batch_id: int) -> None:
        self._producer.begin_transaction()
        for topic, messages in self._messages(table):
            self._send_all(topic, messages)
        mark = ledger.mark(batch_id, table.num_rows, self.identity, self.sink.target(), self.note(batch_id))
        self._producer.produce(self.sink.ledger_topic, mark, self.identity.key.encode())
        reach("kafka.sent")
        self._producer.commit_transaction(PATIENCE)
        reach("kafka.committed")

    def _messages(self, table: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Topics and records in the order of the rows, a chunk at a time."""
        for chunk in table.to_batches(max_chunksize=CHUNK):
            columns = {name: chunk.column(name).to_pylist() for name in chunk.schema.names}
            values, keys = columns["value"], columns.get("key") or [None] * len(chunk)
            made = [{"value": value, "key": key} for value, key in zip(values, keys, strict=True)]
            if "headers" in columns:
                for message, headers in zip(made, columns["headers"], strict=True):
                    message["headers"] = [(one["key"], one["value"]) for one in headers]
            if self.sink.topic is not None:
                yield self.sink.topic, made
                continue
            topics: dict[str, list[dict[str, Any]]] = {}
            for message, topic in zip(made, columns["topic"], strict=True):
                topics.setdefault(topic, []).append(message)
            yield from topics.items()

    def _send_all(self, topic: str, messages: list[dict[str, Any]]) -> None:
        """Queue records; a full queue is waited for."""
        if messages and "headers" in messages[0]:
            for message in messages:
                self._send_one(topic, message)
            return
        while messages:
            self._producer.produce_batch(topic, messages)
            left = []
            for message in messages:
                if (error := message.pop("_error", None)) is not None:
                    if error.name() != "_QUEUE_FULL":
                        raise KafkaException(error)
                    left.append(message)
            if messages := left:
                self._producer.poll(0.01)

    def _send_one(self, topic: str, message: dict[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(topic, message["value"], message["key"], headers=message["headers"])
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    def _settled(self, cause: KafkaException, batch_id: int) -> bool:
        """Did the transaction take place after all? Ends it where it did not."""
        error = cause.args[0]
        if error.name() in _FENCED:
            return False
        if error.txn_requires_abort():
            self._producer.abort_transaction(PATIENCE)
            return False
        # Nobody knows what became of it. A fresh producer ends it one way or the other, and the ledger tells.
        self.close()
        self._take_over()
        return self.holds(batch_id)

    def _explained(self, error: Any) -> MillstreamError:
        target = f"kafka {self.sink.target()}"
        if error.name() in _FENCED:
            return CannotGoOn(
                f"a later start of query '{self.identity.query}' has taken over its writes to {target}",
                "stop this run and keep the other; two runs of one query never both write",
            )
        if error.name() in _LARGE:
            return MillstreamError(
                f"a record is larger than {target} takes: {error.str()}",
                "raise kafka.max.request.size in options and max.message.bytes of the topic, or leave such rows out",
            )
        if error.name() in _DENIED:
            return MillstreamError(
                f"{target} does not let this user write in transactions: {error.str()}",
                "grant Write on the topic, on the ledger's topic and on the transactional id 'millstream-*'",
            )
        return Outage(f"{target} did not take the batch: {error.str()}", "see that the brokers are up")
