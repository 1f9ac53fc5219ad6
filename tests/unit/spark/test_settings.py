"""The settings a session starts with, and the files they travel in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millstream.diagnostics.failure import InvalidInput, NotReady
from millstream.spark import settings
from millstream.spark.jvm_launch import _escape
from millstream.spark.settings import start_settings, with_lasting_metastore
from millstream.spec.secrets.redaction import redact_values

PRIVATE = Path("private")


def chosen(**conf: object) -> dict[str, str]:
    """Keys and values, with `_` for `.` in the given names."""
    values = {key.replace("_", "."): value for key, value in conf.items()}
    return {setting.key: setting.value for setting in start_settings("p", values, [Path("a.jar")], PRIVATE)}


def test_the_users_value_wins() -> None:
    assert chosen(spark_ui_enabled=True)["spark.ui.enabled"] == "true"


def test_a_person_sees_of_a_long_value_the_beginning() -> None:
    assert str(settings.Setting("a", "b" * 200, "why")) == f"a = {'b' * 200}  (why)"
    assert str(settings.Setting("a", "b" * 201, "why")) == f"a = {'b' * 200}…  (why)"


def test_the_users_value_wins_over_one_for_executors() -> None:
    ours = settings.Setting("spark.executor.extraClassPath", "ours.jar", "why")
    for user, value in (({}, "ours.jar"), ({ours.key: "mine.jar"}, "mine.jar")):
        actual = {s.key: s.value for s in start_settings("p", user, [], PRIVATE, [ours])}
        assert actual[ours.key] == value


def test_the_users_own_java_options_replace_the_limits_of_the_optimising_compiler() -> None:
    assert "Tier4" in chosen()["spark.driver.defaultJavaOptions"]
    assert chosen(spark_driver_defaultJavaOptions="-Xss4m")["spark.driver.defaultJavaOptions"] == "-Xss4m"


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


def test_a_file_on_hdfs_is_asked_for_soon_and_as_long_as_hadoop_asks() -> None:
    values = chosen()
    key = "spark.hadoop.dfs.client.block.write.locateFollowingBlock"
    first, questions = (int(values[f"{key}.{name}"]) for name in ("initial.delay.ms", "retries"))

    assert first < 50
    # Each delay doubles; Hadoop's five begin with 400 ms.
    assert sum(first * 2**number for number in range(questions)) >= sum(400 * 2**n for n in range(5))


@pytest.mark.parametrize(
    ("heap", "limit"),
    [("512m", "128m"), ("2g", "512m"), ("1048576k", "256m"), ("800", "200m"), ("16G", "1024m")],
)
def test_results_of_a_job_take_a_quarter_of_the_heap(heap: str, limit: str) -> None:
    assert chosen(spark_driver_memory=heap)["spark.driver.maxResultSize"] == limit


def test_the_users_limit_of_results_is_kept() -> None:
    assert chosen(spark_driver_maxResultSize="3g")["spark.driver.maxResultSize"] == "3g"


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


@pytest.mark.parametrize(
    ("master", "is_on_loopback"),
    [
        ("local", True), ("local[4]", True), ("spark://127.0.0.1:7077", True), ("spark://localhost:7077", True),
        ("spark://127.0.0.1:7077,10.0.0.4:7077", False), ("spark://10.0.0.4:7077", False), ("yarn", False),
    ],
)  # fmt: skip
def test_the_driver_listens_on_loopback_if_its_executors_are_there(master: str, is_on_loopback: bool) -> None:
    assert settings.is_on_loopback(master) is is_on_loopback


def test_the_secret_of_a_cluster_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("pq93kfj2lw0a\n")
    conf = {"spark.master": "spark://h:7077", "spark.authenticate.secret.file": tmp_path / "secret"}

    assert settings.read_secret(conf) == {
        "spark.master": "spark://h:7077",
        "spark.authenticate.secret": "pq93kfj2lw0a",
    }


@pytest.mark.parametrize(
    "name",
    [
        "spark_authenticate_secret",
        "spark_hadoop_fs_s3a_secret_key",
        "spark_ssl_keyPassword",
        "spark_hadoop_fs_s3a_encryption_key",
        "spark_hadoop_fs_azure_account_key_shop_dfs_core_windows_net",
    ],
)
def test_a_secret_is_hidden_once_it_is_a_setting(name: str) -> None:
    values = chosen(spark_master="spark://h:7077", **{name: "pq93kfj2lw0a"})

    assert "pq93kfj2lw0a" not in redact_values("the value is pq93kfj2lw0a")
    assert re.search(values["spark.redaction.regex"], name.replace("_", "."))


def test_where_a_secret_is_and_what_reads_it_are_shown() -> None:
    for name, value in (
        ("spark_authenticate_secret_file", "/run/key"),
        ("spark_credentials_provider", "org.A"),
    ):
        chosen(**{name: value})

        assert redact_values(f"the value is {value}") == f"the value is {value}"


def test_a_secret_file_that_is_not_there_is_a_sentence_for_a_cluster_alone(tmp_path: Path) -> None:
    conf = {"spark.authenticate.secret.file": tmp_path / "secret"}

    with pytest.raises(NotReady, match=r"the cluster's secret in .* cannot be read: No such file"):
        settings.read_secret({**conf, "spark.master": "spark://h:7077"})
    assert settings.read_secret({**conf, "spark.master": "local[2]"}) == {"spark.master": "local[2]"}
    assert settings.read_secret(conf) == {}


def test_a_run_takes_as_many_shuffle_partitions_as_it_may_use_cores_of_the_cluster() -> None:
    chosen_settings = chosen(spark_master="spark://h:7077", spark_cores_max="12")

    assert chosen_settings["spark.sql.shuffle.partitions"] == "12"


@pytest.mark.parametrize(
    ("folders", "manager"),
    [
        (["/srv/a"], None),
        (["/srv/a", "hdfs://nn/b"], "FileContextBasedCheckpointFileManager"),
        (["hdfs://nn/b", "s3a://lake/c"], "millstream.ConditionalCheckpointFileManager"),
    ],
)
def test_a_run_has_the_class_for_its_checkpoints(folders: list[str], manager: str | None) -> None:
    chosen = settings.with_remote_checkpoints({"spark.x": "1"}, folders)

    name = chosen.get("spark.sql.streaming.checkpointFileManagerClass")
    assert (
        name and str(name).removeprefix("org.apache.spark.sql.execution.streaming.checkpointing.")
    ) == manager
    assert chosen["spark.x"] == "1"


def test_another_class_for_checkpoints_on_s3_is_refused_and_elsewhere_it_is_the_specs() -> None:
    own = {"spark.sql.streaming.checkpointFileManagerClass": "org.example.Own"}

    assert settings.with_remote_checkpoints(own, ["hdfs://nn/b"]) == own
    with pytest.raises(InvalidInput, match=r"cannot be org\.example\.Own with a checkpoint on S3"):
        settings.with_remote_checkpoints(own, ["s3a://lake/c"])
