"""Orders for the project `shop`, and the settings with which it runs on a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml
from confluent_kafka import Producer

from millstream.devstack.servers.spark_cluster import ClusterSize
from millstream.devstack.stack import cluster_settings

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints

# The smallest heap that Spark accepts for an executor, and a core for each.
SIZE = ClusterSize(workers=2, cores=1, memory=512)


def put_on_cluster(folder: Path, cluster: Endpoints, **more: str) -> None:
    """Write into a project's spec what a person writes whose cluster is not the one of the project's own stack."""
    file = folder / "pipeline.yml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["spark"] = {**spec.get("spark", {}), **cluster_settings(cluster.folder, cluster.spark), **more}
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")


def put_checkpoints_in(folder: Path, checkpoints: str, **spark: str) -> None:
    """Let a project have its checkpoints there, with settings that reach them, and dead letters in its folder."""
    file = folder / "pipeline.yml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["spark"] = {**spec.get("spark", {}), **spark}
    spec["defaults"]["checkpoints"] = checkpoints
    spec["dead_letters"] = str(folder / "dead_letters")
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")


def send_orders(kafka: str, topic: str, ids: range) -> None:
    """Send an order for each number, of seven users, into two partitions."""
    producer = Producer({"bootstrap.servers": kafka})
    for number in ids:
        order = {"id": number, "user": f"u{number % 7}", "amount": number}
        producer.produce(topic, json.dumps(order).encode(), partition=number % 2)
    assert producer.flush(60) == 0
