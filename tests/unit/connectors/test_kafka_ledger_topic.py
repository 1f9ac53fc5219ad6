"""The topic of a ledger has one partition, and the broker keeps each writer's last entry, whoever created it."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from millstream.connectors.kafka import ledger
from millstream.connectors.kafka.client.options import LEDGER_TOPIC
from millstream.diagnostics.failure import NotReady

# A broker's defaults for a topic.
DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
}


class Topic:
    """A topic with its explicit settings."""

    def __init__(self, partitions: int = 1, **settings: str) -> None:
        self.partitions = partitions
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}

    def describe(self) -> dict[str, Any]:
        return {
            name: SimpleNamespace(value=self.settings.get(name, value), is_default=name not in self.settings)
            for name, value in DEFAULTS.items()
        }


class Cluster:
    """A cluster that creates a topic as soon as a request names it, and its admin client."""

    def __init__(self, topics: dict[str, Topic] | None = None) -> None:
        self.topics = topics or {}
        self.hidden: dict[str, Topic] = {}
        """Topics that another client creates between the list of topics and the creation."""
        self.denied: set[str] = set()
        """Requests that this user may not make."""

    def __call__(self, *_: Any, **__: Any) -> Cluster:
        return self

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ARG002 - the client's
        if topic is not None:
            self.topics.setdefault(topic, Topic(6))
        return SimpleNamespace(
            topics={
                name: SimpleNamespace(error=None, partitions=dict.fromkeys(range(known.partitions)))
                for name, known in self.topics.items()
            }
        )

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, Future[None]]:
        self.topics |= self.hidden
        (new,) = topics
        if new.topic in self.topics:
            return {new.topic: failed_future(KafkaError.TOPIC_ALREADY_EXISTS)}
        self.topics[new.topic] = Topic(new.num_partitions)
        self.topics[new.topic].settings = dict(new.config)
        return {new.topic: completed_future(None)}

    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Future[Any]]:
        (resource,) = resources
        if "describe" in self.denied:
            return {resource: failed_future(KafkaError.TOPIC_AUTHORIZATION_FAILED)}
        return {resource: completed_future(self.topics[resource.name].describe())}

    def incremental_alter_configs(self, resources: list[Any], **_: Any) -> dict[Any, Future[Any]]:
        (resource,) = resources
        if "alter" in self.denied:
            return {resource: failed_future(KafkaError.TOPIC_AUTHORIZATION_FAILED)}
        for entry in resource.incremental_configs:
            self.topics[resource.name].settings[entry.name] = entry.value
        return {resource: completed_future(None)}


def completed_future(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def failed_future(code: int) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def ensure(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, topic: str = LEDGER_TOPIC) -> dict[str, str]:
    """Ensure the ledger topic, and return the settings that it then has."""
    monkeypatch.setattr(ledger, "AdminClient", cluster)
    ledger.ensure_topic({}, topic)
    return cluster.topics[topic].settings


def test_a_missing_ledger_has_its_settings_also_if_the_broker_creates_topics_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()

    settings = ensure(monkeypatch, cluster)

    assert settings["cleanup.policy"] == "compact"
    assert cluster.topics[LEDGER_TOPIC].partitions == 1


def test_a_topic_that_another_client_creates_at_the_same_time_must_be_a_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.hidden = {LEDGER_TOPIC: Topic(6)}

    with pytest.raises(NotReady, match="has 6 partitions, but a ledger must have one"):
        ensure(monkeypatch, cluster)


def test_a_ledger_that_another_start_creates_at_the_same_time_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.hidden = {LEDGER_TOPIC: Topic(cleanup_policy="compact")}

    assert ensure(monkeypatch, cluster)["cleanup.policy"] == "compact"


def test_a_ledger_that_a_broker_created_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ensure(monkeypatch, Cluster({LEDGER_TOPIC: Topic()}))

    assert (settings["cleanup.policy"], settings["segment.ms"]) == ("compact", "3600000")


@pytest.mark.parametrize(
    ("topic", "settings"),
    [
        ("orders", {}),
        ("orders", {"cleanup_policy": "delete"}),
        (LEDGER_TOPIC, {"cleanup_policy": "delete"}),
        (LEDGER_TOPIC, {"cleanup_policy": "compact,delete"}),
        (LEDGER_TOPIC, {"cleanup_policy": "delete", "retention_ms": "-1", "retention_bytes": "1000"}),
    ],
)
def test_a_topic_whose_entries_the_broker_would_delete_is_refused_and_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, topic: str, settings: dict[str, str]
) -> None:
    cluster = Cluster({topic: Topic(1, **settings)})
    before = dict(cluster.topics[topic].settings)

    with pytest.raises(NotReady, match=rf"topic '{topic}'.* has cleanup\.policy=(compact,)?delete") as error:
        ensure(monkeypatch, cluster, topic)

    assert "set cleanup.policy=compact on the topic" in error.value.fix
    assert cluster.topics[topic].settings == before


@pytest.mark.parametrize(
    "settings",
    [
        {"cleanup_policy": "compact"},
        {"retention_ms": "-1"},
        {"cleanup_policy": "delete", "retention_ms": "-1"},
    ],
)
def test_a_topic_that_keeps_its_entries_is_a_ledger(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    topic = Topic(1, **settings)
    explicit = dict(topic.settings)

    after = ensure(monkeypatch, Cluster({"own-ledger": topic}), "own-ledger")

    assert after == explicit | {"segment.bytes": "8388608", "segment.ms": "3600000"}


def test_a_user_who_may_not_read_settings_may_use_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster({LEDGER_TOPIC: Topic()})
    cluster.denied = {"describe"}

    assert ensure(monkeypatch, cluster) == {}


def test_a_user_who_may_not_change_settings_gets_a_compacted_ledger_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster({LEDGER_TOPIC: Topic(cleanup_policy="compact")})
    cluster.denied = {"alter"}

    assert ensure(monkeypatch, cluster) == {"cleanup.policy": "compact"}
    cluster.topics[LEDGER_TOPIC] = Topic()
    with pytest.raises(NotReady, match=r"cleanup\.policy=delete"):
        ensure(monkeypatch, cluster)
