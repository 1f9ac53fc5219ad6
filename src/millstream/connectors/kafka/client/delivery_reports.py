"""Keep the first record of a transaction that was not delivered, and explain what no broker will ever accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.connectors.api.messages import to_printable_line
from millstream.connectors.kafka.client.producer_errors import INVALID
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from millstream.connectors.kafka.sink import KafkaSink

# Names of librdkafka's errors. These say no more than that a record was not delivered, or that an earlier error has
# stopped the transaction. The report of the record has the reason.
_CONSEQUENCES = ("_INCONSISTENT", "_STATE")
# Reports of records that were removed by an abort, or were sent together with an invalid one.
_UNRELATED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT", "_INVALID_DIFFERENT_RECORD")
_BAD_NAME = "TOPIC_EXCEPTION"
_NO_TOPIC = ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART", _BAD_NAME)


class DeliveryReports:
    """The first error of a record in a transaction. A producer calls this object with each record's report."""

    def __init__(self) -> None:
        self._error: Any = None
        self._topic = ""

    def __call__(self, error: Any, message: Any) -> None:
        """Keep the error of a record."""
        if error is not None:
            self.keep(error, message.topic())

    def keep(self, error: Any, topic: str) -> None:
        """Keep the error of a record for a topic, unless there is an earlier one or the record is not its reason."""
        if self._error is None and error.name() not in (*_CONSEQUENCES, *_UNRELATED):
            self._error, self._topic = error, topic

    def clear(self) -> None:
        """Forget the last transaction."""
        self._error, self._topic = None, ""

    def find_reason(self, error: Any) -> Any:
        """Return the error of the record if `error` says no more than that a record was not delivered."""
        return self._error if self._error is not None and error.name() in _CONSEQUENCES else error

    def explain(self, error: Any, sink: KafkaSink) -> MillstreamError | None:
        """Explain the error of a record that no broker will ever accept; None for any other error."""
        if error.name() == INVALID:
            return MillstreamError(
                f"kafka {sink.target()} does not accept a record of the batch, such as one without a key in a "
                f"compacted topic: {error.str()}",
                "filter out rows whose key is NULL, or give them a key"
                if sink.key
                else "if the topic is compacted, add key with the columns that identify a row",
            )
        if error.name() not in _NO_TOPIC or self._error is None or self._error.name() not in _NO_TOPIC:
            return None
        if sink.topic is not None or self._topic == sink.ledger_topic:
            # A topic that the spec names was there when the query started, and may come back.
            return None
        return MillstreamError(
            f"column '{sink.topic_column}' of a row names topic '{to_printable_line(self._topic)}', which "
            + ("is not a valid name" if self._error.name() == _BAD_NAME else "does not exist"),
            "create the topic, or correct or filter out such rows in the view",
        )
