"""How a stack begins, survives and ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from millstream.devstack import stack
from millstream.devstack.supervisor.process import wait_for_exit
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Project

NAMESPACE = ("unshare", "-U", "--map-user=1000", "--map-group=1000")


@pytest.fixture(scope="module")
def first_start(make_project: Callable[..., Project]) -> tuple[Project, subprocess.CompletedProcess[str]]:
    """A project whose spec had errors when its stack was started first, and what the command said."""
    project = make_project()
    spec = project.folder / "pipeline.yml"
    before = spec.read_text()
    spec.write_text("name: shop\nsources: 7\n")
    result = project.call("up", "--detach", "--json")
    spec.write_text(before)
    return project, result


@pytest.fixture(scope="module")
def used(first_start: tuple[Project, subprocess.CompletedProcess[str]]) -> Project:
    """A project whose stack has been up before, so that its servers have their files."""
    project, _ = first_start
    project.up()
    return project


@pytest.fixture
def running_stack(used: Project) -> tuple[Project, dict[str, str]]:
    """A stack that runs, detached, whatever became of it in an earlier test, and its addresses."""
    if [server.state for server in stack.status(used.folder)] != ["running", "running"]:
        used.up()
    return used, Home(used.folder).endpoints().to_json()


@pytest.fixture
def stopped_stack(used: Project) -> Project:
    """A stack that does not run."""
    stack.down(used.folder)
    return used


def other_account() -> bool:
    """Can a process of another account be had here?"""
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*NAMESPACE, "true"], check=False).returncode
    )


def test_a_spec_with_errors_does_not_keep_the_servers_down(
    first_start: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, result = first_start

    assert result.returncode == 0
    assert "the spec has errors" in result.stderr
    assert set(project.servers()) == {"kafka", "postgres"}


def test_one_server_stops_and_comes_back_where_it_was(running_stack: tuple[Project, dict[str, str]]) -> None:
    project, before = running_stack

    assert project.call("down", "kafka").returncode == 0
    assert {name: item.state for name, item in project.servers().items()} == {
        "kafka": "stopped",
        "postgres": "running",
    }
    assert stack.environment(project.folder)["KAFKA"] == before["kafka"]
    assert project.up("kafka") == before
    assert project.servers()["kafka"].state == "running"


def test_a_server_that_dies_is_seen_and_started_again(running_stack: tuple[Project, dict[str, str]]) -> None:
    project, _ = running_stack
    database = project.servers()["postgres"]
    process = next(item for item in project.processes() if item.pid == database.pid)

    process.send(signal.SIGKILL)

    assert wait_for_exit([process], 100)
    project.up()
    assert project.servers()["postgres"].state == "running"
    assert project.servers()["postgres"].pid != database.pid


def test_two_projects_run_side_by_side(
    project: Project, running_stack: tuple[Project, dict[str, str]]
) -> None:
    other, second = running_stack

    # Without a broker, which takes long to start: each worker's stack has one.
    first = project.up("postgres")

    assert first["kafka"] != second["kafka"]
    assert project.call("down").returncode == 0
    assert stack.environment(other.folder) == {"KAFKA": second["kafka"], "POSTGRES_URL": second["postgres"]}
    assert {server.state for server in other.servers().values()} == {"running"}


def test_data_and_addresses_survive_down_and_up_and_a_port_that_was_taken_since_gives_way(
    running_stack: tuple[Project, dict[str, str]],
) -> None:
    project, before = running_stack
    records = count_rows(before["kafka"])
    with psycopg.connect(before["postgres"]) as connection:
        connection.execute("CREATE TABLE kept (n int)")
    producer = Producer({"bootstrap.servers": before["kafka"]})
    producer.produce("events", b"kept", partition=0)
    assert producer.flush(60) == 0
    assert project.call("down").returncode == 0
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(before["kafka"].rpartition(":")[2])))
        other.listen()

        after = project.up()

    assert after["kafka"] != before["kafka"]
    assert after["postgres"] == before["postgres"]
    with psycopg.connect(after["postgres"]) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert (
        AdminClient({"bootstrap.servers": after["kafka"]}).list_topics("events", timeout=60).topics["events"]
    )
    assert count_rows(after["kafka"]) == records + 1


def count_rows(address: str, topic: str = "events") -> int:
    """How many records partition 0 of a topic holds."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.close()
    return int(high - low)


def test_up_recovers_after_servers_and_guardian_were_killed(
    running_stack: tuple[Project, dict[str, str]],
) -> None:
    project, before = running_stack
    with psycopg.connect(before["postgres"]) as connection:
        connection.execute("CREATE TABLE survivor (n int)")
    processes = project.processes()
    for process in processes:
        process.send(signal.SIGKILL)
    assert wait_for_exit(processes, 100)

    after = project.up()

    assert after == before
    with psycopg.connect(after["postgres"]) as connection:
        assert connection.execute("SELECT count(*) FROM survivor").fetchone() == (0,)


def test_a_detached_stack_outlives_its_starter_and_nothing_is_left_when_the_guardian_is_killed(
    running_stack: tuple[Project, dict[str, str]],
) -> None:
    project, _ = running_stack
    guardian, *servers = project.processes()
    assert all(process.is_alive for process in (guardian, *servers))

    guardian.send(signal.SIGKILL)

    assert wait_for_exit(servers, 100)
    assert stack.environment(project.folder) == {}


def test_nothing_is_left_when_the_attached_starter_is_killed(stopped_stack: Project) -> None:
    starter = stopped_stack.attach("postgres")
    processes = stopped_stack.processes()

    starter.kill()

    assert len(processes) == 2
    assert wait_for_exit(processes, 100)
    assert stack.environment(stopped_stack.folder) == {}


# SIGHUP comes to a demo in recovery/test_closed_demo.py.
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.whole)])
def test_the_attached_starter_ends_well_when_it_is_told_to(
    stopped_stack: Project, number: signal.Signals
) -> None:
    starter = stopped_stack.attach("postgres")
    processes = stopped_stack.processes()

    starter.send_signal(number)

    assert starter.wait(120) == 0
    assert wait_for_exit(processes, 10)


def test_a_server_that_cannot_start_is_one_sentence(stopped_stack: Project) -> None:
    version = stopped_stack.folder / ".millstream/stack/postgres/PG_VERSION"
    before = version.read_text()
    version.write_text("9\n")

    result = stopped_stack.call("up", "--detach")
    version.write_text(before)

    assert result.returncode == 4
    assert "postgres ended while it started" in result.stderr
    assert "Traceback" not in result.stderr
    assert stack.status(stopped_stack.folder) == []


@pytest.mark.parametrize("server", ["kafka", "postgres"])
def test_a_taken_port_that_was_asked_for_is_one_sentence(project: Project, server: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        result = project.call("up", "--detach", f"--{server}-port", str(port))

    assert result.returncode == 4
    assert f"port {port}, requested for {server}, is taken" in result.stderr
    assert "Traceback" not in result.stderr
    assert stack.status(project.folder) == []


@pytest.mark.skipif(
    os.geteuid() != 0 or not other_account(), reason="the other tests run as a plain user here"
)
def test_a_plain_user_can_have_a_stack(project: Project) -> None:
    actual = project.up(under=NAMESPACE)

    with psycopg.connect(actual["postgres"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert project.call("down", under=NAMESPACE).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0 and not other_account(), reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_one_sentence(project: Project) -> None:
    under: tuple[str, ...] = ()
    if os.geteuid() == 0:
        # Inside the namespace the process is root no more, and this owner is a stranger to it.
        os.chown(project.folder, 65534, 65534)
        under = NAMESPACE
    project.folder.chmod(0o555)

    result = project.call("up", "--detach", under=under)

    assert result.returncode == 4
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
