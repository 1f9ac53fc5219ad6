"""The stack's folder: what is read as running, what as left over."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from millstream.devstack import ports, stack
from millstream.devstack.supervisor.process import Identity, wait_for_exit
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.state import Home, ServerStatus, StackState
from millstream.diagnostics.failure import InvalidInput, NotReady


@pytest.fixture
def home(tmp_path: Path) -> Home:
    result = Home(tmp_path)
    result.make()
    result.write("addresses.json", {"kafka": 19000, "controller": 19001, "postgres": 19002})
    return result


def test_no_stack_gives_no_environment(tmp_path: Path) -> None:
    assert stack.environment(tmp_path) == {}


def test_the_environment_of_a_running_stack_has_both_addresses(home: Home) -> None:
    home.write("state.json", StackState(Identity.current()).to_json())

    environment = stack.environment(home.project)

    assert environment["KAFKA"] == "127.0.0.1:19000"
    assert environment["POSTGRES_URL"].endswith("@127.0.0.1:19002/millstream")


def test_a_guardian_whose_pid_another_process_has_is_not_running(home: Home) -> None:
    home.write("state.json", StackState(Identity(os.getpid(), "an earlier start")).to_json())

    assert stack.environment(home.project) == {}


def test_a_state_file_that_breaks_off_counts_as_none(home: Home) -> None:
    (home / "state.json").write_text('{"guardian": {"pid"')

    assert home.state() is None
    assert stack.status(home.project) == []


def test_a_state_of_another_shape_counts_as_none(home: Home) -> None:
    home.write("state.json", {"pids": [1, 2]})

    assert home.state() is None


def test_a_state_reads_as_it_was_written(home: Home) -> None:
    stack_state = StackState(
        Identity(7, "b"), is_attached=True, servers={"kafka": ServerStatus("failed", 2, None, 1)}
    )

    home.write("state.json", stack_state.to_json())

    assert home.state() == stack_state


def test_a_file_that_cannot_be_written_leaves_no_draft(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(home.path.iterdir())

    def fill_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fill_disk)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left on device"):
            home.write("state.json", StackState(Identity.current()).to_json())

    assert sorted(home.path.iterdir()) == before


def test_files_of_the_stack_are_for_their_owner_only(home: Home) -> None:
    assert stat.S_IMODE((home / "addresses.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700


def test_down_without_a_stack_says_so_and_makes_no_folder(tmp_path: Path) -> None:
    assert stack.down(tmp_path) is False
    assert list(tmp_path.iterdir()) == []


def test_the_status_shows_no_password(home: Home) -> None:
    outside = {"kafka": "broker:9092", "postgres": "postgresql://me:hidden@db:5432/x"}
    home.write("addresses.json", {"outside": outside})

    assert [status.address for status in stack.status(home.project)] == ["broker:9092", "db:5432/x"]


def test_a_stack_of_others_servers_alone_stays_what_it_is_until_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack.ready, "wait_for_servers", lambda *_: None)
    outside = {"kafka": "broker:9092", "postgres": "postgresql://me:hidden@db:5432/x"}

    first = stack.up(tmp_path, outside=outside)

    assert stack.up(tmp_path) == first == stack.Endpoints(outside["kafka"], outside["postgres"], tmp_path)
    with pytest.raises(NotReady, match="a stack with other servers runs here"):
        stack.up(tmp_path, outside={**outside, "kafka": "other:9092"})
    assert stack.down(tmp_path)
    assert stack.environment(tmp_path) == {}


@pytest.mark.parametrize(
    ("server", "address", "name"),
    [("kafka", "broker:9092", "KAFKA"), ("postgres", "postgresql://me:hidden@db:5432/x", "POSTGRES_URL")],
)
def test_a_stack_of_one_server_of_others_runs_and_names_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, address: str, name: str
) -> None:
    monkeypatch.setattr(stack.ready, "wait_for_servers", lambda *_: None)

    endpoints = stack.up(tmp_path, servers=(server,), outside={server: address})

    assert endpoints.environment() == stack.environment(tmp_path) == {name: address}
    assert endpoints.to_json() == {server: address, "folder": str(tmp_path)}
    assert [status.state for status in stack.status(tmp_path)] == ["outside"]
    assert stack.down(tmp_path)
    assert stack.environment(tmp_path) == {}


def test_of_a_stack_whose_guardian_was_killed_the_servers_of_others_do_not_run_either(home: Home) -> None:
    home.write("addresses.json", {"postgres": 19002, "outside": {"kafka": "broker:9092"}})
    home.write("state.json", StackState(Identity(os.getpid(), "an earlier start")).to_json())
    database = ServerSpec("postgres", ("postgres",), "postgres.log")
    home.write("parts.json", {"postgres": database.to_json()})

    assert stack.environment(home.project) == {}


def test_a_server_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no server 'redis'"):
        stack.start(tmp_path, "redis")


def test_a_process_that_ended_is_known_to_have_ended() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    identity = Identity.of(child)

    assert identity is None or wait_for_exit([identity], 60)
    os.waitpid(child, 0)


def test_a_port_is_kept_while_it_is_free(tmp_path: Path) -> None:
    first = ports.choose_port(tmp_path, 0)

    assert ports.choose_port(tmp_path, 0) == first


def test_a_taken_port_gives_way_to_another(tmp_path: Path) -> None:
    first = ports.choose_port(tmp_path, 0)
    with socket.socket() as other:
        other.bind((ports.LOCAL, first))
        other.listen()

        assert ports.choose_port(tmp_path, 0, previous=first) != first


def test_a_taken_port_that_was_asked_for_is_one_sentence() -> None:
    with socket.socket() as other:
        other.bind((ports.LOCAL, 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(NotReady, match=f"port {port}, requested for kafka, is taken"):
            ports.require_free_port(port, "kafka", "--kafka-port")
