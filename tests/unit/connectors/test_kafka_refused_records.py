"""A record that no broker will ever accept ends its batch as a defect, and is not sent again and again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka import ledger, transactions
from millstream.connectors.kafka.client.delivery_reports import DeliveryReports
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.transactions import TransactionalWriter
from millstream.diagnostics.failure import CheckpointError, MillstreamError, NotReady, Outage
from millstream.spec.output_mode import OutputMode

BY_ROW = {"topic_column": "place", "key": "id"}


class Accepting:
    """A producer whose broker accepts every record."""

    def __init__(self, settings: dict[str, Any], **_: Any) -> None:
        # A call for each record that is delivered would take longer than sending it.
        assert settings["delivery.report.only.error"]
        self.report = settings["on_delivery"]
        self.topics: list[str] = []

    def init_transactions(self, _: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def produce_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:
        self.topics += [topic] * len(messages)

    def produce(self, topic: str, *_: Any, **__: Any) -> None:
        self.topics.append(topic)

    def commit_transaction(self, _: float) -> None: ...

    def abort_transaction(self, _: float) -> None: ...

    def purge(self) -> None: ...


class Refusing(Accepting):
    """A producer whose broker does not accept the records of a topic, which only their reports say."""

    topic, code = "misspelt", KafkaError.UNKNOWN_TOPIC_OR_PART

    def commit_transaction(self, _: float) -> None:
        for topic in self.topics:
            if topic == self.topic:
                self.report(KafkaError(self.code), SimpleNamespace(topic=lambda: self.topic))
        raise failure(KafkaError._INCONSISTENT, "1 message(s) failed delivery", must_abort=True)


class Knowing(Accepting):
    """A producer that already knows that a topic does not exist."""

    def produce_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:
        if topic == "misspelt":
            for message in messages:
                message["_error"] = KafkaError(KafkaError._UNKNOWN_TOPIC)


class KnowingOfOne(Accepting):
    """A producer that already knows that a topic does not exist, for records that are produced one by one."""

    def produce(self, topic: str, *_: Any, **__: Any) -> None:
        if topic == "misspelt":
            raise failure(KafkaError._UNKNOWN_TOPIC, "Unable to produce message")


class Validating(Accepting):
    """A producer whose broker refuses an invalid record before the commit."""

    def commit_transaction(self, _: float) -> None:
        raise failure(KafkaError.INVALID_RECORD, "ProduceRequest for orders [0] failed", must_abort=True)


class Stopped(Accepting):
    """A producer whose transaction was stopped by an invalid record while more are produced."""

    def produce_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:  # noqa: ARG002 - the client's
        for message in messages:
            message["_error"] = KafkaError(KafkaError._STATE)

    def abort_transaction(self, _: float) -> None:
        for code in (
            KafkaError._PURGE_QUEUE,
            KafkaError._INVALID_DIFFERENT_RECORD,
            KafkaError.INVALID_RECORD,
            KafkaError._MSG_TIMED_OUT,
        ):
            self.report(KafkaError(code), SimpleNamespace(topic=lambda: "orders"))


class Fenced(Accepting):
    """A producer that was fenced, and calls the function for reports while it raises that error."""

    def commit_transaction(self, _: float) -> None:
        raise SystemError("returned a result with an exception set") from failure(
            KafkaError._FENCED, "fenced"
        )


class Faulty(Accepting):
    """A producer whose function for reports has a fault of its own."""

    def commit_transaction(self, _: float) -> None:
        raise SystemError("returned a result with an exception set") from ValueError("a fault")


def failure(code: int, reason: str, *, must_abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, reason, txn_requires_abort=must_abort))


def write(monkeypatch: pytest.MonkeyPatch, producer: type, *topics: str, **settings: Any) -> MillstreamError:
    """Write a row for each topic; return the error."""
    return send(opened(monkeypatch, producer, **settings), *topics)


def opened(monkeypatch: pytest.MonkeyPatch, producer: type, **settings: Any) -> TransactionalWriter:
    """Return a writer with that producer."""
    monkeypatch.setattr(transactions, "Producer", producer)
    monkeypatch.setattr(ledger, "last_entry", lambda *_: None)
    sink = KafkaSink.model_validate({"bootstrap_servers": "localhost:9092", "transactional": True} | settings)
    writer = sink.writer(SinkIdentity("shop", "orders", "3f0c", "kafka:orders", OutputMode.APPEND))
    assert isinstance(writer, TransactionalWriter)
    writer._take_over()
    return writer


def send(writer: TransactionalWriter, *topics: str) -> MillstreamError:
    """Send a row for each topic; return the error."""
    columns: dict[str, Any] = {"value": [b"{}"] * len(topics), "topic": list(topics)}
    if writer.sink.headers:
        columns["headers"] = [[{"key": "trace", "value": b"1"}]] * len(topics)
    with pytest.raises(MillstreamError) as error:
        writer.send(len(topics), [pa.RecordBatch.from_pydict(columns)], 7)
    return error.value


@pytest.mark.parametrize(
    ("producer", "settings"), [(Refusing, {}), (Knowing, {}), (KnowingOfOne, {"headers": {"trace": "id"}})]
)
def test_a_topic_of_a_row_that_does_not_exist_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, producer: type, settings: dict[str, Any]
) -> None:
    error = write(monkeypatch, producer, "orders", "misspelt", **BY_ROW, **settings)

    assert not isinstance(error, NotReady)
    assert error.what == "column 'place' of a row names topic 'misspelt', which does not exist"
    assert "create the topic" in error.fix


def test_a_topic_of_a_row_with_an_invalid_name_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refusing, "topic", "a b\x1b")
    monkeypatch.setattr(Refusing, "code", KafkaError.TOPIC_EXCEPTION)

    error = write(monkeypatch, Refusing, "orders", "a b\x1b", **BY_ROW)

    assert not isinstance(error, NotReady)
    assert error.what == r"column 'place' of a row names topic 'a b\x1b', which is not a valid name"


@pytest.mark.parametrize("producer", [Validating, Stopped])
@pytest.mark.parametrize(
    ("settings", "fix"),
    [({}, "add key with the columns"), ({"key": "id"}, "filter out rows whose key is NULL")],
)
def test_a_record_without_a_key_in_a_compacted_topic_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, producer: type, settings: dict[str, Any], fix: str
) -> None:
    error = write(monkeypatch, producer, "orders", topic="orders", **settings)

    assert not isinstance(error, NotReady)
    assert error.what.startswith(
        "kafka orders does not accept a record of the batch, such as one without a key in a compacted topic: "
    )
    assert fix in error.fix


def test_the_topic_of_a_sink_that_is_gone_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(write(monkeypatch, Refusing, "misspelt", topic="misspelt"), Outage)


def test_a_ledger_that_is_gone_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    error = write(monkeypatch, Refusing, "orders", **BY_ROW, ledger_topic="misspelt")

    assert isinstance(error, Outage)


def test_a_fenced_producer_is_known_by_the_error_behind_that_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = write(monkeypatch, Fenced, "orders", topic="orders")

    assert isinstance(error, CheckpointError)
    assert "a newer run of query 'orders' has taken over" in error.what


def test_another_error_of_python_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemError):
        write(monkeypatch, Faulty, "orders", topic="orders")


def test_records_that_are_not_delivered_in_time_are_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refusing, "code", KafkaError._MSG_TIMED_OUT)

    assert isinstance(write(monkeypatch, Refusing, "misspelt", **BY_ROW), Outage)


def test_the_reason_of_an_earlier_transaction_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = opened(monkeypatch, Refusing, **BY_ROW)
    assert "which does not exist" in send(writer, "misspelt").what
    monkeypatch.setattr(Refusing, "code", KafkaError._MSG_TIMED_OUT)

    assert isinstance(send(writer, "misspelt"), Outage)


def test_a_producer_reports_to_them_and_a_purged_record_is_no_reason() -> None:
    reports = DeliveryReports()
    producer = Producer(
        {
            "bootstrap.servers": "localhost:1",
            "log_level": 0,
            "on_delivery": reports,
            "delivery.report.only.error": True,
        }
    )
    producer.produce("orders", b"a record")
    producer.purge()
    producer.poll(0)
    unknown = KafkaError(KafkaError._INCONSISTENT)

    assert len(producer) == 0
    assert reports.find_reason(unknown) is unknown
