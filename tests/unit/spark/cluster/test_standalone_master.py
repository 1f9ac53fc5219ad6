"""A master that does not answer is said before a JVM starts."""

from __future__ import annotations

import socket

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.spark.cluster.standalone_master import explain_refusal, require_master


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_master_that_accepts_connections_passes_though_another_of_the_list_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        require_master(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}")


def test_no_master_at_the_address_is_one_sentence() -> None:
    with pytest.raises(
        NotReady, match=r"no Spark master answers at spark://127.0.0.1:\d+: Connection refused"
    ):
        require_master(f"spark://127.0.0.1:{free_port()}")


@pytest.mark.parametrize(
    "error",
    [
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
        'java.lang.NullPointerException: Cannot invoke "org.apache.spark.scheduler.DAGScheduler.metricsSource()" '
        'because the return value of "org.apache.spark.SparkContext._dagScheduler()" is null',
    ],
)
def test_a_context_that_stopped_while_it_started_was_refused_by_the_cluster(error: str) -> None:
    with (
        pytest.raises(NotReady, match="the cluster spark://h:1 refused this application"),
        explain_refusal("spark://h:1"),
    ):
        raise RuntimeError(error)
    with pytest.raises(RuntimeError), explain_refusal("local[2]"):
        raise RuntimeError(error)


def test_another_error_of_a_start_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="no such class"), explain_refusal("spark://h:1"):
        raise RuntimeError("no such class")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://nowhere:1"])
def test_masters_of_other_kinds_are_left_to_spark(master: str) -> None:
    require_master(master)
