"""The settings of a session: of spark-submit, and of executors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.spark import cds_archive, internals, jvm_launch, session
from millstream.spark.jars import jar_cache
from millstream.spark.java_discovery import Java
from millstream.spark.settings import S3_CLIENT, Setting


def submit(monkeypatch: pytest.MonkeyPatch, folder: Path, jars: str) -> None:
    """Let spark-submit have started this process with these jars."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(session, "_applied", [])
    monkeypatch.setattr(session, "create_private_folder", lambda: folder)
    monkeypatch.setattr(internals, "submitted_conf", lambda: {"spark.jars": jars, "spark.master": "yarn"})
    monkeypatch.setattr(jar_cache, "ensure_jars", lambda group: [Path(f"{group}.jar")])
    monkeypatch.setattr(session, "ensure_s3_jars", lambda: [Path("s3.jar"), Path("conditional-writes.jar")])


@pytest.mark.parametrize(
    ("master", "shares"),
    [
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://host:7077", False),
        ("yarn", False),
        ("local[2]", False),
    ],
)
def test_only_executors_on_this_machine_share_the_archive_of_classes_once_there_is_one(
    master: str, shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    monkeypatch.delenv("MILLSTREAM_ARCHIVE", raising=False)
    java, jars = Java(tmp_path, 17, "a test"), [tmp_path / "a.jar", tmp_path / "b.jar"]
    for file in (*jars, tmp_path / "draft"):
        file.write_bytes(b"classes")
    assert session._executor_settings(master, java, jars) == []
    archive = cds_archive.archive_file(java, jars)
    assert archive is not None
    cds_archive.install_archive(tmp_path / "draft", archive)

    actual = {setting.key: setting.value for setting in session._executor_settings(master, java, jars)}

    assert bool(actual) == shares
    if shares:
        assert actual["spark.executor.extraClassPath"] == f"{jars[0]}:{jars[1]}"
        assert f"-XX:SharedArchiveFile={archive}" in actual["spark.executor.defaultJavaOptions"]


def test_the_jars_of_s3_are_required_of_spark_submit_if_the_spec_uses_s3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(monkeypatch, tmp_path, "/jars/spark.jar")

    assert session._submitted_settings("shop", {})["spark.master"] == "yarn"
    with pytest.raises(NotReady, match=r"spark-submit was started without s3\.jar and 1 more jars") as raised:
        session._submitted_settings("shop", S3_CLIENT)

    assert raised.value.fix == 'add --jars "$(millstream jars paths s3)" to the command'


def test_spark_submit_with_the_jars_of_s3_starts_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(monkeypatch, tmp_path, "/jars/spark.jar,/jars/s3.jar,/jars/conditional-writes.jar")

    submitted = session._submitted_settings("shop", S3_CLIENT)

    assert S3_CLIENT.items() <= submitted.items()


PYTHONS = [({"spark.pyspark.python": "/opt/python"}, "/opt/python"), ({}, "/env/python")]


@pytest.mark.parametrize(("conf", "python"), PYTHONS)
def test_the_python_of_the_spec_has_precedence_over_the_environment_below_spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], python: str
) -> None:
    submit(monkeypatch, tmp_path, "/jars/spark.jar")
    monkeypatch.setenv("PYSPARK_PYTHON", "/env/python")

    session._submitted_settings("shop", conf)

    assert os.environ["PYSPARK_PYTHON"] == python


@pytest.mark.parametrize(("conf", "python"), PYTHONS)
def test_the_python_of_the_spec_has_precedence_over_the_environment_in_a_jvm_that_starts(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], python: str
) -> None:
    def refuse(*_: object) -> None:
        raise NotReady("no JVM starts", "start none")

    monkeypatch.setattr(jvm_launch, "start_jvm", refuse)
    monkeypatch.setenv("PYSPARK_PYTHON", "/env/python")
    planned = SimpleNamespace(settings=[Setting(key, value, "a test") for key, value in conf.items()])

    with pytest.raises(NotReady, match="no JVM starts"):
        session._launch(planned, ())  # type: ignore[arg-type]

    assert os.environ["PYSPARK_PYTHON"] == python


def test_functions_run_on_the_python_of_this_process_if_nothing_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(monkeypatch, tmp_path, "/jars/spark.jar")
    monkeypatch.delenv("PYSPARK_PYTHON")

    session._submitted_settings("shop", {})

    assert os.environ["PYSPARK_PYTHON"] == sys.executable


class LivingJvm:
    """The process of a JVM that lives. It must not be waited for."""

    def poll(self) -> None:
        return None


def test_a_server_that_refuses_a_connection_is_not_taken_for_a_lost_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_running", [session._Jvm(LivingJvm(), tmp_path, tmp_path / "log")])  # type: ignore[arg-type]

    with pytest.raises(ConnectionRefusedError) as refused:
        raise ConnectionRefusedError

    assert session.explain_lost_jvm(refused.value) is None
