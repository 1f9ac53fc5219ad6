"""Names of a transactional producer's errors, and explanations of those that no retry resolves."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

# All names are librdkafka's. These are the errors of a producer with an old epoch: a newer producer raises the epoch,
# and so does a broker that ends a transaction after its timeout.
FENCED = ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
# What `produce` says once an earlier error has stopped the transaction, or the producer.
STOPPED = ("_STATE", "_FATAL")
# The broker has validated a record; in a compacted topic, each needs a key.
INVALID = "INVALID_RECORD"
LARGE = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
DENIED = (
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
)
_BAD_OPTIONS = ("_INVALID_ARG", "INVALID_TRANSACTION_TIMEOUT")


def explain_refusal(error: Any, target: str) -> MillstreamError | None:
    """Explain an error of options, large records or missing permissions; None for any other error."""
    if error.name() in _BAD_OPTIONS:
        return MillstreamError(
            f"{target} rejected a producer option: {error.str()}",
            "correct the options; transaction.timeout.ms cannot exceed the brokers' transaction.max.timeout.ms",
        )
    if error.name() in LARGE:
        return MillstreamError(
            f"a record is larger than {target} accepts: {error.str()}",
            "raise kafka.max.request.size in options and max.message.bytes of the topic, or filter out such rows",
        )
    if error.name() in DENIED:
        return MillstreamError(
            f"{target} does not permit this user to write in transactions: {error.str()}",
            "grant Write on the topic, on the ledger topic and on the transactional id 'millstream-*'",
        )
    return None


@contextlib.contextmanager
def restore_client_errors() -> Iterator[None]:
    """Raise the client's own error instead of the `SystemError` that Python makes of it.

    If a call fails, as that of a producer that was fenced does, confluent-kafka may still call the function for
    reports. Python does not allow that while an error is raised, and keeps that error as the cause of its own.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise
