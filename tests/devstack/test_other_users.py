"""The local broker serves the user that started it, and no other user of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from devstack.test_life import count_rows
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from conftest import Project

    Running = tuple[Project, dict[str, str]]

NOBODY = "65534"
# What a client with no settings of its own can do at the address that is the first argument, with as many seconds for
# each attempt as the second says, as the user that may be the third.
ATTEMPTS = """
import json, os, sys
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if len(sys.argv) > 3:
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
seconds = int(sys.argv[2])
client = {"bootstrap.servers": sys.argv[1], "log_level": 0, "socket.timeout.ms": 1000 * seconds}
done = []
try:
    AdminClient(client).list_topics(timeout=seconds)
    done.append("list")
except KafkaException:
    pass
def ask(name, futures):
    try:
        [one.result(2 * seconds) for one in futures.values()]
        done.append(name)
    except KafkaException:
        pass

admin = AdminClient(client)
ask("create", admin.create_topics([NewTopic("theirs", 1, 1)], request_timeout=seconds))
producer = Producer({**client, "message.timeout.ms": 1000 * seconds})
producer.produce("events", b"forged", partition=0, on_delivery=lambda error, _: error or done.append("produce"))
producer.flush(2 * seconds)
consumer = Consumer({**client, "group.id": "theirs", "auto.offset.reset": "earliest"})
consumer.assign([TopicPartition("events", 0, 0)])
message = consumer.poll(seconds)
if message is not None and not message.error():
    done.append("consume")
ask("delete", admin.delete_topics(["events"], request_timeout=seconds))
print(json.dumps(done))
"""


def attempts(address: str, seconds: int, *account: str) -> list[str]:
    """What of listing, creating, deleting, producing and consuming a process of that account is let do."""
    command = [sys.executable, "-c", ATTEMPTS, address, str(seconds), *account]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    data: list[str] = json.loads(result.stdout)
    return data


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user for a moment")
@pytest.mark.skipif(
    not Path("/proc/self/net/tcp").exists(), reason="the system does not say whose a connection is"
)
def test_another_user_of_the_machine_can_do_nothing_at_the_broker(project: Project) -> None:
    address = project.up("kafka")["kafka"]
    assert project.call("traffic", "--rows", "50").returncode == 0
    before = count_rows(address)
    controller = f"127.0.0.1:{Home(project.folder).addresses()['controller']}"

    reference = attempts(address, 3, NOBODY)
    at_controller = attempts(controller, 3, NOBODY)

    assert (reference, at_controller) == ([], [])
    assert count_rows(address) == before > 0
    assert "theirs" not in AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).topics
    assert attempts(address, 60) == ["list", "create", "produce", "consume", "delete"]
