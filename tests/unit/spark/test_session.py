"""The settings of a session in a process that spark-submit has started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.spark import internals, session
from millstream.spark.jars import jar_cache
from millstream.spark.settings import S3_CLIENT


def submit(monkeypatch: pytest.MonkeyPatch, folder: Path, jars: str) -> None:
    """Let spark-submit have started this process with these jars."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(session, "_applied", [])
    monkeypatch.setattr(session, "create_private_folder", lambda: folder)
    monkeypatch.setattr(internals, "submitted_conf", lambda: {"spark.jars": jars, "spark.master": "yarn"})
    monkeypatch.setattr(jar_cache, "ensure_jars", lambda group: [Path(f"{group}.jar")])
    monkeypatch.setattr(session, "ensure_s3_jars", lambda: [Path("s3.jar"), Path("conditional-writes.jar")])


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
