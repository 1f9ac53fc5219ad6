"""The settings a session starts with, and the files they travel in."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.diagnostics.failure import InvalidInput
from millstream.spark import settings
from millstream.spark.jvm_launch import _escape
from millstream.spark.settings import start_settings, with_lasting_metastore

PRIVATE = Path("private")


def chosen(**conf: object) -> dict[str, str]:
    """Keys and values, with `_` for `.` in the given names."""
    values = {key.replace("_", "."): value for key, value in conf.items()}
    return {setting.key: setting.value for setting in start_settings("p", values, [Path("a.jar")], PRIVATE)}


def test_the_users_value_wins() -> None:
    assert chosen(spark_ui_enabled=True)["spark.ui.enabled"] == "true"


def test_the_users_extensions_are_added_to_deltas() -> None:
    extensions = chosen(spark_sql_extensions="org.example.Mine")["spark.sql.extensions"]

    assert extensions == "io.delta.sql.DeltaSparkSessionExtension,org.example.Mine"


def test_each_connector_brings_its_settings_and_their_extensions_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, extension in (("iceberg", "org.A"), ("pulsar", "org.B")):
        (tmp_path / folder).mkdir()
        pairs = {"spark.sql.extensions": extension, folder: "1"}
        lines = (f'["{key}"]\nvalue = "{value}"\nreason = "r"\n' for key, value in pairs.items())
        (tmp_path / folder / "session.toml").write_text("".join(lines))
    monkeypatch.setattr(settings, "CONNECTORS", tmp_path)

    values = chosen(spark_sql_extensions="org.Mine")

    assert values["spark.sql.extensions"] == "org.A,org.B,org.Mine"
    assert (values["iceberg"], values["pulsar"]) == ("1", "1")


def test_shuffle_partitions_follow_the_masters_cores() -> None:
    assert chosen(spark_master="local[3]")["spark.sql.shuffle.partitions"] == "3"


def test_a_cluster_gets_the_jars_and_one_machine_does_not() -> None:
    assert chosen(spark_master="spark://h:7077")["spark.jars"] == "a.jar"
    assert "spark.jars" not in chosen(spark_master="local[2]")


def test_unlocked_jars_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"spark\.jars\.packages cannot be set"):
        chosen(spark_jars_packages="org.example:thing:1.0")


def test_every_setting_has_a_reason() -> None:
    assert all(setting.reason for setting in start_settings("p", {}, [], PRIVATE))


@pytest.mark.parametrize(
    ("text", "written"),
    [("a b", r"a\ b"), ("a=b:c", r"a\=b\:c"), ("a\\b\nc", r"a\\b\nc"), ("é😀", "\\u00e9\\ud83d\\ude00")],
)
def test_a_value_is_written_as_java_reads_properties(text: str, written: str) -> None:
    assert _escape(text) == written


@pytest.mark.parametrize(
    ("folder", "meant"), [("lake/metastore", str(Path("lake/metastore").absolute())), ("/srv/m", "/srv/m")]
)
def test_a_metastore_in_a_folder_outlives_the_process(folder: str, meant: str) -> None:
    key = "spark.hadoop.javax.jdo.option.ConnectionURL"

    lasting = with_lasting_metastore({key: f"jdbc:derby:;databaseName={folder};create=true"})

    assert lasting == {key: f"jdbc:derby:;databaseName={meant};create=true"}
