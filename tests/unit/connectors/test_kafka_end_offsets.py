"""The client that watches end offsets is replaced after an outage, as it may never connect again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from millstream.connectors.kafka.client import end_offsets
from millstream.connectors.kafka.client.end_offsets import EndOffsetWatcher
from millstream.diagnostics.failure import Unreachable


def test_each_outage_is_followed_by_a_new_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Client:
        def __init__(self, *_: object, **__: object) -> None:
            made.append(self)

        def list_topics(self, timeout: float) -> None:  # noqa: ARG002 - that of the client
            raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))

    monkeypatch.setattr(end_offsets, "AdminClient", Client)
    broker: Any = SimpleNamespace(bootstrap_servers=("127.0.0.1:9",), native=dict)
    watcher = EndOffsetWatcher(broker, ["orders"])

    for _ in range(2):
        with pytest.raises(Unreachable, match=r"no Kafka broker responds at 127\.0\.0\.1:9"):
            watcher.read()

    assert len(made) == 2
