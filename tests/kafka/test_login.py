"""A broker that asks for a login: `init` reads it, Spark reads it, and a wrong password is a sentence."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from millstream.cli.main import run_command
from millstream.devstack.ports import LOCAL, choose_port
from millstream.devstack.servers import kafka, topics
from millstream.devstack.supervisor.state import Home
from millstream.pipeline.spec_file import load_spec
from millstream.spec.avro.encoding import encode_row
from millstream.spec.avro.schema import Avro

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

# The last value of a setting counts.
LISTENERS = r"""
listeners=SASL_PLAINTEXT://{local}:{port},PLAINTEXT://{local}:{inner},CONTROLLER://{local}:{controller}
advertised.listeners=SASL_PLAINTEXT://{local}:{port},PLAINTEXT://{local}:{inner}
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
PASSWORD = 'of "ada" \\ 1'
SCHEMA = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a broker at which ada has a password, and a topic `clicks` of Avro values."""
    home = Home(tmp_path_factory.mktemp("guarded"))
    home.make()
    port, inner, controller = (choose_port(home.project, number) for number in range(3))
    server = kafka.prepare(home, port, controller, lambda _: None)
    with (home / "kafka.properties").open("a") as settings:
        settings.write(LISTENERS.format(local=LOCAL, port=port, inner=inner, controller=controller))
    with (
        home.log("kafka").open("w") as log,
        subprocess.Popen(server.argv, cwd=home.path, stdout=log, stderr=log) as broker,
    ):
        try:
            assert kafka.wait_for_broker(f"{LOCAL}:{inner}", 120, lambda: broker.poll() is None), log.name
            inside = {"bootstrap.servers": f"{LOCAL}:{inner}"}
            scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            user = UserScramCredentialUpsertion("ada", scram, PASSWORD.encode())
            admin = AdminClient(inside)
            admin.alter_user_scram_credentials([user])["ada"].result(60)
            topics.create_topics(f"{LOCAL}:{inner}", {"clicks": {"partitions": "2"}})
            producer, avro = Producer(inside), Avro.model_validate({"schema": SCHEMA})
            for number in range(40):
                row = {"id": number, "at": NOON + timedelta(seconds=number)}
                producer.produce("clicks", encode_row(avro, row), partition=number % 2)
            assert producer.flush(60) == 0
            yield f"{LOCAL}:{port}"
        finally:
            broker.kill()


@pytest.fixture
def init(guarded: str, tmp_path: Path) -> list[str]:
    """The command for a project in `shop`, which takes the password from SHOP_PASSWORD."""
    schema = tmp_path / "click.avsc"
    schema.write_text(json.dumps(SCHEMA))
    login = ("protocol=SASL_PLAINTEXT", "username=ada", "password=${SHOP_PASSWORD}")
    words = [word for setting in login for word in ("--security", setting)]
    command = ["init", str(tmp_path / "shop"), "--from-topic", "clicks", "--servers", guarded]
    return [*command, "--avro-schema", str(schema), *words]


def test_a_topic_behind_a_login_becomes_a_project_that_spark_reads(
    init: list[str], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)

    assert run_command(init) == 0

    loaded = load_spec(tmp_path / "shop/pipeline.yml", {"SHOP_PASSWORD": PASSWORD})
    assert not loaded.findings
    assert loaded.pipeline is not None
    entry = loaded.pipeline.sources["clicks"]
    assert entry.source.read(spark, static=True, schema=entry.ddl).count() == 40
    assert PASSWORD not in (tmp_path / "shop/pipeline.yml").read_text()


def test_a_wrong_password_is_a_sentence(
    init: list[str],
    guarded: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "of eve")

    assert run_command(init) == 4

    error = capsys.readouterr().err
    assert f"the Kafka broker at {guarded} refused the login" in error
    assert "of eve" not in error
    assert not (tmp_path / "shop/pipeline.yml").exists()
