"""The local broker serves the user that started it, and no other user of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from devstack.test_life import count_rows
from millstream.devstack.servers.topics import create_topics
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from millstream.devstack.supervisor.state import Endpoints

TOPIC = "guarded"
NOBODY = "65534"
# What a client with no settings of its own can do with a topic. The arguments are the broker's address, the topic,
# the seconds for each attempt, and the user if it is another one.
ATTEMPTS = """
import json, os, sys
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

address, topic, seconds = *sys.argv[1:3], int(sys.argv[3])
if len(sys.argv) > 4:
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))
client = {"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 1000 * seconds}
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
producer.produce(topic, b"forged", partition=0, on_delivery=lambda error, _: error or done.append("produce"))
producer.flush(2 * seconds)
consumer = Consumer({**client, "group.id": "theirs", "auto.offset.reset": "earliest"})
consumer.assign([TopicPartition(topic, 0, 0)])
message = consumer.poll(seconds)
if message is not None and not message.error():
    done.append("consume")
ask("delete", admin.delete_topics([topic, "theirs"], request_timeout=seconds))
print(json.dumps(done))
"""


def attempts(address: str, seconds: int, *account: str) -> list[str]:
    """What of listing, creating, deleting, producing and consuming a process of that account is let do."""
    command = [sys.executable, "-c", ATTEMPTS, address, TOPIC, str(seconds), *account]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    data: list[str] = json.loads(result.stdout)
    return data


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user for a moment")
@pytest.mark.skipif(
    not Path("/proc/self/net/tcp").exists(), reason="the system does not say whose a connection is"
)
def test_another_user_of_the_machine_can_do_nothing_at_the_broker(stack: Endpoints) -> None:
    create_topics(stack.kafka, {TOPIC: {}})
    producer = Producer({"bootstrap.servers": stack.kafka})
    producer.produce(TOPIC, b"ours", partition=0)
    assert producer.flush(60) == 0
    controller = f"127.0.0.1:{Home(stack.folder).addresses()['controller']}"

    with ThreadPoolExecutor() as pool:
        at_broker, at_controller = pool.map(
            lambda address: attempts(address, 3, NOBODY), (stack.kafka, controller)
        )

    assert (at_broker, at_controller) == ([], [])
    assert count_rows(stack.kafka, TOPIC) == 1
    assert "theirs" not in AdminClient({"bootstrap.servers": stack.kafka}).list_topics(timeout=60).topics
    assert attempts(stack.kafka, 60) == ["list", "create", "produce", "consume", "delete"]
