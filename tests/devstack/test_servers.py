"""What the servers of a running stack do for their users."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from millstream.devstack import stack
from millstream.devstack.supervisor.state import Home
from millstream.devstack.traffic import send
from millstream.devstack.traffic.model import read_traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Project

    Running = tuple[Project, dict[str, str]]


def wait_for(true: Callable[[], bool], seconds: float = 120) -> bool:
    """Has it become true within that time?"""
    pause, stop = threading.Event(), time.monotonic() + seconds
    while not (actual := true()) and time.monotonic() < stop:
        pause.wait(0.02)
    return actual


def value_at(address: str, topic: str, partition: int, offset: int) -> bytes:
    """The committed record at a place."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, partition, offset)])
    message = consumer.poll(60)
    consumer.close()
    assert message is not None, "the broker is silent"
    return message.value() or b""


def test_the_topics_of_spec_and_traffic_are_made(running: Running) -> None:
    topics = AdminClient({"bootstrap.servers": running[1]["kafka"]}).list_topics(timeout=60).topics

    assert "events" in topics


def test_a_topic_that_nobody_declared_is_not_made(running: Running) -> None:
    producer = Producer(
        {"bootstrap.servers": running[1]["kafka"], "message.timeout.ms": 3000, "log_level": 0}
    )
    refusal: list[object] = []

    producer.produce("misspelt", b"x", on_delivery=lambda error, _: refusal.append(error))
    producer.flush(60)

    assert refusal
    assert refusal[0] is not None


def test_the_broker_takes_a_transaction(running: Running) -> None:
    address = running[1]["kafka"]
    placed: list[tuple[int, int]] = []
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t1"})
    producer.init_transactions(100)
    producer.begin_transaction()

    producer.produce(
        "events",
        b"sent",
        on_delivery=lambda _, message: placed.append((message.partition(), message.offset())),
    )
    producer.commit_transaction(100)

    assert value_at(address, "events", *placed[0]) == b"sent"


def test_the_database_answers(running: Running) -> None:
    with psycopg.connect(running[1]["postgres"]) as connection:
        row = connection.execute(
            "SELECT current_user, current_database(), current_setting('fsync')"
        ).fetchone()

    assert row == ("millstream", "millstream", "on")


def test_a_table_without_a_schema_is_public_beside_a_ledger_of_the_users_name(running: Running) -> None:
    with psycopg.connect(running[1]["postgres"]) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS millstream")
        connection.execute("CREATE TABLE plain (id int)")
        row = connection.execute("SELECT to_regclass('public.plain') IS NOT NULL").fetchone()
        connection.rollback()

    assert row == (True,)


def test_a_wrong_password_is_refused(running: Running) -> None:
    url = running[1]["postgres"]
    password = url.split("//")[1].split("@")[0].split(":")[1]

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace(password, "guess"))


def test_servers_listen_on_this_machine_only(running: Running) -> None:
    """Read from the kernel's table: a listener's address is 127.0.0.1, also in its IPv6 spelling."""
    addresses = Home(running[0].folder).addresses()
    item = {addresses[name] for name in ("kafka", "controller", "postgres")}
    actual = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            address, port = words[1].split(":")
            if words[3] == "0A" and int(port, 16) in item:
                actual[int(port, 16)] = address

    assert set(actual) == item
    assert all(address.endswith("0100007F") for address in actual.values())


def test_the_password_is_for_its_owner_only(running: Running) -> None:
    secret = running[0].folder / ".millstream/stack/password"

    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_the_database_password_is_on_no_command_line(running: Running) -> None:
    project, addresses = running
    password = addresses["postgres"].split("//")[1].split("@")[0].split(":")[1].encode()

    for process in project.processes():
        for name in ("cmdline", "environ"):
            assert password not in Path(f"/proc/{process.pid}/{name}").read_bytes()


def test_up_again_changes_nothing(running: Running) -> None:
    project, addresses = running
    before = project.processes()

    assert project.up() == addresses
    assert project.processes() == before


def test_ps_names_both_servers(running: Running) -> None:
    servers = json.loads(running[0].call("ps", "--json").stdout)["servers"]

    assert [(item["name"], item["state"]) for item in servers] == [
        ("kafka", "running"),
        ("postgres", "running"),
    ]


def test_logs_prints_as_many_lines_as_asked_for(running: Running) -> None:
    assert len(running[0].call("logs", "kafka", "-n", "3").stdout.splitlines()) == 3


def test_the_environment_has_the_addresses(running: Running) -> None:
    project, addresses = running

    environment = stack.environment(project.folder)

    assert environment == {"KAFKA": addresses["kafka"], "POSTGRES_URL": addresses["postgres"]}


def test_the_journal_tells_where_each_record_stands(running: Running, tmp_path: Path) -> None:
    project, addresses = running
    journal = tmp_path / "journal.jsonl"

    result = project.call(
        "traffic", "--rows", "2000", "--start", "2026-01-01T00:00:00Z", "--journal", str(journal), "--json"
    )

    topic = json.loads(result.stdout)["topics"][0]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    kinds = Counter(line["kind"] for line in lines)
    assert topic["sent"] == len(lines) == 2000
    assert (kinds["good"], kinds["duplicate"]) == (topic["good"], topic["duplicates"])
    good = next(line for line in lines if line["kind"] == "good")
    position = value_at(addresses["kafka"], "events", good["partition"], good["offset"])
    assert json.loads(position)["id"] == good["event_id"]


def test_traffic_to_a_missing_topic_is_one_sentence(running: Running, tmp_path: Path) -> None:
    other = tmp_path / "other.yml"
    other.write_text("streams: {nowhere: {rate: 1, fields: {id: uuid}}}")

    result = running[0].call("traffic", "--rows", "1", "--traffic", str(other))

    assert result.returncode == 4
    assert "has no topic 'nowhere'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_project_can_use_servers_of_elsewhere(running: Running, project: Project) -> None:
    addresses = running[1]

    actual = project.up("--kafka", addresses["kafka"], "--postgres-url", addresses["postgres"])

    assert (actual["kafka"], actual["postgres"]) == (addresses["kafka"], addresses["postgres"])
    assert project.call("down").returncode == 0
    assert stack.environment(project.folder) == {}


def test_a_broker_of_elsewhere_that_is_away_is_one_sentence(project: Project) -> None:
    result = project.call(
        "up", "--detach", "--kafka", "127.0.0.1:9", "--postgres-url", "postgresql://a:b@127.0.0.1:9/x"
    )

    assert result.returncode == 4
    assert "does not answer" in result.stderr or "refuses the connection" in result.stderr
    assert "Traceback" not in result.stderr
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": "127.0.0.1:9", "log_level": 0}).list_topics(timeout=1)


def test_traffic_in_a_thread_stops_when_told_and_sums_up(running: Running) -> None:
    declared = read_traffic(running[0].folder / "traffic.yml")
    sending = send.TrafficRun(declared, send.SendPlan.of(declared, seed=11), running[1]["kafka"])

    waited = wait_for(lambda: sending.summary.topics["events"].total >= 5)
    summary = sending.stop()

    assert waited
    assert summary.topics["events"].total >= 5
    assert not sending.is_sending


def test_paced_traffic_takes_the_time_it_was_given(running: Running) -> None:
    result = running[0].call("traffic", "--for", "2s", "--json")

    data = json.loads(result.stdout)
    assert data["seconds"] >= 2.0
    assert 70 <= data["topics"][0]["sent"] <= 150
