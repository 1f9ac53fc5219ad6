"""A client of Kafka that cannot be created, as while a certificate is replaced, is a broker that is not reachable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.kafka import connectivity, dead_letter_topic, latest_records, ledger, sandbox_io
from millstream.connectors.kafka.client.admin import describe_topics
from millstream.connectors.kafka.client.end_offsets import EndOffsetWatcher
from millstream.connectors.kafka.client.partition_ends import read_end_offsets
from millstream.connectors.kafka.client.resend import resend
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.source import KafkaSource
from millstream.diagnostics.failure import Unreachable
from millstream.engine.failure_classifier import FailureKind, classify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def broker(file: Path, field: str = "ca_file") -> KafkaSink:
    """A broker with TLS, for which a file is needed."""
    security = {"protocol": "SSL", field: str(file)}
    return KafkaSink.model_validate(
        {"bootstrap_servers": "localhost:9093", "topic": "orders", "security": security}
    )


CLIENTS: dict[str, Callable[[KafkaSink], Any]] = {
    "describe_topics": lambda broker: describe_topics(broker, ["orders"]),
    "connect_admin": connectivity.connect_admin,
    "ensure_topic of the ledger": lambda broker: ledger.ensure_topic(broker.native(), "ledger"),
    "last_entry": lambda broker: ledger.last_entry(broker.native(), "ledger", "mine"),
    "ensure_topic of dead letters": lambda broker: dead_letter_topic.ensure_topic(broker, "letters"),
    "probe": lambda broker: dead_letter_topic.probe(broker, "letters"),
    "read_dead_letters": lambda broker: list(dead_letter_topic.read_dead_letters(broker, "letters")),
    "read_latest": lambda broker: dead_letter_topic.read_latest(broker, "letters", 5, []),
    "read_latest_rows": lambda broker: latest_records.read_latest_rows(broker, 5),
    "read_end_offsets": lambda broker: read_end_offsets(broker.native(), "orders"),
    "EndOffsetWatcher": lambda broker: EndOffsetWatcher(broker, ["orders"]).read(),
    "resend": lambda broker: resend(broker, "orders", []),
    "send_records": lambda broker: sandbox_io.send_records(broker, "orders", []),
    "create_topic": lambda broker: sandbox_io.create_topic(broker, "orders"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_names_the_setting_and_the_file_that_it_cannot_use(tmp_path: Path, client: str) -> None:
    with pytest.raises(Unreachable) as error:
        CLIENTS[client](broker(tmp_path / "ca.pem"))

    assert error.value.what.startswith("Kafka at localhost:9093 cannot be reached: ssl.ca.location failed")
    assert f"ca_file {tmp_path / 'ca.pem'}" in error.value.fix


@pytest.mark.parametrize("field", ["ca_file", "client_pem"])
def test_a_file_that_is_only_written_in_part_is_an_outage_and_named(tmp_path: Path, field: str) -> None:
    file = tmp_path / "half.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nMIIB")

    with pytest.raises(Unreachable) as error:
        describe_topics(broker(file, field), ["orders"])

    assert f"{field} {file}" in error.value.fix
    assert "\n" not in error.value.what
    assert classify(None, error.value).cause is FailureKind.OUTAGE


def test_a_source_whose_certificate_is_replaced_while_its_query_starts_again_is_not_reachable(
    tmp_path: Path,
) -> None:
    security = {"protocol": "SSL", "ca_file": str(tmp_path / "ca.pem")}
    source = KafkaSource.model_validate(
        {"bootstrap_servers": "localhost:9093", "subscribe": "orders", "security": security}
    )

    with pytest.raises(Unreachable):
        source.probe()
