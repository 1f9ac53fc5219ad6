"""Kafka's settings: what they mean to its clients, and what is refused before anybody connects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from pydantic import ValidationError

from millstream.connectors.api.values.offsets import OffsetRange
from millstream.connectors.api.values.problem import RequiredResource
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka.client import admin
from millstream.connectors.kafka.client.security import Security
from millstream.connectors.kafka.offsets.offset_split import offset_bounds
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.source import KafkaSource
from millstream.connectors.kafka.transactions import TransactionalWriter
from millstream.diagnostics.failure import NotReady
from millstream.spec.output_mode import OutputMode


def source(**settings: Any) -> KafkaSource:
    return KafkaSource.model_validate(
        {"bootstrap_servers": "localhost:9092", "subscribe": "clicks"} | settings
    )


def sink(**settings: Any) -> KafkaSink:
    return KafkaSink.model_validate({"bootstrap_servers": "localhost:9092", "topic": "funnel"} | settings)


def messages(given: KafkaSource) -> list[str]:
    return [problem.message for problem in given.problems()]


@pytest.mark.parametrize("servers", ["a:9092,b:9092", "a:9092, b:9092", ["a:9092", "b:9092"]])
def test_brokers_are_a_list_or_a_text(servers: Any) -> None:
    assert source(bootstrap_servers=servers).client()["kafka.bootstrap.servers"] == "a:9092,b:9092"


@pytest.mark.parametrize("server", ["localhost", "http://localhost:9092", "localhost:"])
def test_a_broker_without_a_port_is_a_problem(server: str) -> None:
    assert messages(source(bootstrap_servers=server)) == [f"'{server}' is not HOST:PORT"]


def test_no_broker_at_all_is_an_error() -> None:
    with pytest.raises(ValidationError):
        source(bootstrap_servers="")


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {"subscribe": "clicks"}),
        ({"subscribe": "clicks, carts"}, {"subscribe": "clicks,carts"}),
        ({"subscribe": ["clicks", "carts"]}, {"subscribe": "clicks,carts"}),
        ({"subscribe": [], "subscribe_pattern": "c.*"}, {"subscribePattern": "c.*"}),
        ({"subscribe": [], "assign": {"clicks": [0, 2]}}, {"assign": '{"clicks": [0, 2]}'}),
    ],
)
def test_topics_are_chosen_in_three_ways(settings: dict[str, Any], options: dict[str, str]) -> None:
    assert source(**settings)._topic_option() == options
    assert source(**settings).problems() == []


def test_no_topic_is_a_problem() -> None:
    assert messages(source(subscribe=[])) == ["the kafka source has no topic"]


def test_topics_chosen_twice_are_a_problem() -> None:
    assert messages(source(subscribe_pattern="c.*")) == [
        "kafka has topics from subscribe and subscribe_pattern"
    ]


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("*-orders", "nothing to repeat at position 0"),
        (r"\p{Lower}+", r"bad escape \p at position 0"),
    ],
)
def test_a_pattern_that_is_no_regular_expression_of_java_and_python_is_a_problem(
    pattern: str, error: str
) -> None:
    assert messages(source(subscribe=[], subscribe_pattern=pattern)) == [
        f"subscribe_pattern '{pattern}' is not a regular expression: {error}"
    ]


def test_starting_offsets_are_given_to_spark_as_json() -> None:
    start = source(starting_offsets={"clicks": {"0": 12, "1": -2}})._start_options(static=False)

    assert json.loads(start["startingOffsets"]) == {"clicks": {"0": 12, "1": -2}}


def test_starting_offsets_of_another_topic_are_a_problem() -> None:
    assert messages(source(starting_offsets={"carts": {"0": 1}})) == [
        "topic 'carts' is not read by this source"
    ]


def test_a_starting_timestamp_needs_a_zone() -> None:
    with pytest.raises(ValidationError):
        source(starting_timestamp="2026-01-01T00:00:00")


def test_a_starting_timestamp_is_milliseconds() -> None:
    start = source(starting_timestamp="2026-01-01T00:00:00Z")._start_options(static=False)

    assert start == {"startingTimestamp": "1767225600000", "startingOffsetsByTimestampStrategy": "latest"}


def test_a_table_is_read_from_the_oldest_record() -> None:
    assert source(starting_offsets="latest")._start_options(static=True) == {}


def test_limits_of_a_batch_have_sparks_names() -> None:
    kafka_source = source(
        max_offsets_per_trigger=100, min_offsets_per_trigger=10, max_trigger_delay="1 minute"
    )

    assert kafka_source._start_options(static=False) == {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "100",
        "minOffsetsPerTrigger": "10",
        "maxTriggerDelay": "60000ms",
    }


def test_limits_that_exclude_each_other_are_a_problem() -> None:
    kafka_source = source(max_offsets_per_trigger=10, min_offsets_per_trigger=100)

    assert messages(kafka_source) == [
        "min_offsets_per_trigger (100) is greater than max_offsets_per_trigger (10)"
    ]


def test_aborted_transactions_are_not_read_unless_asked_for() -> None:
    assert source()._base_options()["kafka.isolation.level"] == "read_committed"
    kafka_source = source(options={"kafka.isolation.level": "read_uncommitted"})
    assert kafka_source._base_options()["kafka.isolation.level"] == "read_uncommitted"


def test_the_end_of_a_partition_is_not_waited_for_unless_asked_for() -> None:
    client = source()._base_options()
    assert (client["kafka.fetch.max.wait.ms"], client["kafka.max.poll.records"]) == ("10", "5000")
    kafka_source = source(options={"kafka.fetch.max.wait.ms": 500})
    assert kafka_source._base_options()["kafka.fetch.max.wait.ms"] == "500"


def test_options_of_the_client_are_passed_through() -> None:
    kafka_source = source(
        options={"kafka.max.poll.records": 100, "kafka.check.crcs": True, "maxRecordsPerPartition": 5}
    )

    assert kafka_source.problems() == []
    assert kafka_source._base_options()["kafka.max.poll.records"] == "100"
    assert kafka_source._base_options()["kafka.check.crcs"] == "true"


@pytest.mark.parametrize(
    "key",
    [
        "kafka.auto.offset.reset",
        "kafka.enable.auto.commit",
        "kafka.interceptor.classes",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.sasl.jaas.config",
        "kafka.sasl.login.callback.handler.class",
        "kafka.sasl.client.callback.handler.class",
        "kafka.sasl.login.class",
        "kafka.sasl.oauthbearer.token.endpoint.url",
        "kafka.sasl.oauthbearer.jwks.endpoint.url",
        "kafka.ssl.engine.factory.class",
        "kafka.metric.reporters",
        "kafka.config.providers",
        "kafka.config.providers.file.class",
        "kafka.security.providers",
        "kafka.partitioner.class",
        "kafka.ssl.keystore.password",
        "kafka.ssl.keystore.key",
        "kafka.sasl.oauthbearer.client.credentials.client.secret",
        "KAFKA.SASL.JAAS.CONFIG",
        "Kafka.Metric.Reporters",
        "kafka.group.id",
        "kafka.bootstrap.servers",
        "startingOffsets",
        "max.poll.records",
    ],
)
def test_an_option_that_is_not_taken_is_one_problem(key: str) -> None:
    assert [problem.field for problem in source(options={key: "x"}).problems()] == ["options"]


def test_hosts_of_certificates_stay_checked() -> None:
    kafka_source = source(options={"kafka.ssl.endpoint.identification.algorithm": ""})

    assert messages(kafka_source) == ["option 'kafka.ssl.endpoint.identification.algorithm' is empty"]


def login(password: str, mechanism: str = "SCRAM-SHA-512") -> Security:
    return Security.model_validate(
        {"protocol": "SASL_SSL", "mechanism": mechanism, "username": "ann", "password": password}
    )


@pytest.mark.parametrize(
    ("password", "written"),
    [
        ("plain", '"plain"'),
        ('x";', '"x\\";"'),
        ("back\\slash", '"back\\\\slash"'),
        ('\\"', '"\\\\\\""'),
        ("two\nlines", '"two\\nlines"'),
    ],
)
def test_a_password_cannot_leave_its_quotes(password: str, written: str) -> None:
    assert login(password).java()["kafka.sasl.jaas.config"] == (
        f'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password={written};'
    )


def test_the_mechanism_chooses_the_login_module() -> None:
    assert "PlainLoginModule" in login("x", "PLAIN").java()["kafka.sasl.jaas.config"]


def test_a_password_is_shown_nowhere() -> None:
    kafka_source = source(security={"protocol": "SASL_SSL", "username": "ann", "password": "S3CR3T"})

    assert (
        "S3CR3T"
        not in repr(kafka_source)
        + kafka_source.model_dump_json()
        + str(kafka_source.identity())
        + kafka_source.describe()
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protocol": "SASL_SSL"}, "protocol SASL_SSL needs a username and a password"),
        (
            {"username": "ann", "password": "x"},
            "protocol PLAINTEXT uses no login, but a username or password is set",
        ),
        ({"ca_file": "ca.pem"}, "protocol PLAINTEXT is not encrypted, but certificates are set"),
    ],
)
def test_half_a_login_is_a_problem(settings: dict[str, str], message: str) -> None:
    assert messages(source(security=settings)) == [message]


def test_both_clients_get_the_same_authority() -> None:
    security = Security.model_validate({"protocol": "SSL", "ca_file": "ca.pem"})

    assert (
        security.java()["kafka.ssl.truststore.location"] == security.native()["ssl.ca.location"] == "ca.pem"
    )


def test_a_source_needs_its_topics() -> None:
    assert source(subscribe="clicks,carts").needs() == [
        RequiredResource("kafka", "topic", "clicks", at="localhost:9092"),
        RequiredResource("kafka", "topic", "carts", at="localhost:9092"),
    ]
    assert source(subscribe=[], subscribe_pattern="c.*").needs() == []


def test_a_batch_is_read_from_the_end_of_the_one_before() -> None:
    start, end = offset_bounds(OffsetRange('{"clicks": {"0": 5, "1": 7}}', '{"clicks": {"0": 9, "1": 7}}'))

    assert start == {"clicks": {"0": 5, "1": 7}}
    assert end == {"clicks": {"0": 9, "1": 7}}


def test_a_partition_that_came_later_is_read_from_its_oldest_record() -> None:
    start, _ = offset_bounds(
        OffsetRange('{"clicks": {"0": 5}}', '{"clicks": {"0": 9, "1": 7}, "carts": {"0": 1}}')
    )

    assert start == {"clicks": {"0": 5, "1": -2}, "carts": {"0": -2}}


def test_a_partition_that_went_is_not_asked_for() -> None:
    start, _ = offset_bounds(OffsetRange('{"clicks": {"0": 5, "1": 7}}', '{"clicks": {"0": 9}}'))

    assert start == {"clicks": {"0": 5}}


def test_a_first_batch_without_a_start_is_read_from_the_oldest() -> None:
    assert offset_bounds(OffsetRange(None, '{"clicks": {"0": 9}}'))[0] == {"clicks": {"0": -2}}


def test_an_unreachable_broker_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "PATIENCE", 0.3)
    with pytest.raises(NotReady) as error:
        source(bootstrap_servers="127.0.0.1:1").probe()

    assert error.value.what == "no Kafka broker responds at 127.0.0.1:1"
    assert "millstream up" in error.value.fix


def test_a_sink_needs_its_topic() -> None:
    assert sink().needs() == [RequiredResource("kafka", "topic", "funnel", at="localhost:9092")]
    assert sink(topic=None, topic_column="to").needs() == []


@pytest.mark.parametrize(
    ("settings", "mode", "message"),
    [
        ({"topic": None}, OutputMode.APPEND, "kafka needs a topic"),
        ({"topic_column": "to"}, OutputMode.APPEND, "kafka has both 'topic' and 'topic_column'"),
        ({"value": "body"}, OutputMode.APPEND, "format json writes all columns to the value"),
        ({}, OutputMode.UPDATE, "kafka in update mode needs the key of a row"),
        (
            {"options": {"kafka.transactional.id": "t"}},
            OutputMode.APPEND,
            "Spark refuses the option 'kafka.transactional.id'",
        ),
        (
            {"options": {"kafka.value.serializer": "t"}},
            OutputMode.APPEND,
            "Spark refuses the option 'kafka.value.serializer'",
        ),
    ],
)
def test_a_sink_that_cannot_work_says_why(settings: dict[str, Any], mode: OutputMode, message: str) -> None:
    assert [problem.message for problem in sink(**settings).problems(mode)] == [message]


def test_a_sink_that_can_work_has_no_problems() -> None:
    assert sink(key="user_id").problems(OutputMode.UPDATE) == []


def test_a_transactional_writer_that_is_closed_waits_for_no_broker() -> None:
    writer = sink(transactional=True).writer(SinkIdentity("shop", "q", "1", "kafka:q", OutputMode.APPEND))
    assert isinstance(writer, TransactionalWriter)
    writer.close()
    producer = writer._producer = Producer({"bootstrap.servers": "localhost:1", "log_level": 0})
    producer.produce("funnel", b"a record of a batch that has failed")

    writer.close()

    producer.poll(0)
    assert len(producer) == 0
