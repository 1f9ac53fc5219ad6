"""A package, submitted to a cluster by the spark-submit of an environment that has no Millstream."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from cluster.orders import send_orders
from cluster.test_cluster import assert_all_sinks_have
from millstream.devstack.stack import cluster_settings
from millstream.spark.settings import read_secret
from packages import unpack

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.project import Project
    from millstream.devstack.supervisor.state import Endpoints

ORDERS = 300


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_spark_submit_runs_a_package_on_workers_that_have_neither_millstream_nor_its_jars(
    shop: Project, cluster: Endpoints, tmp_path: Path
) -> None:
    unpacked = unpack(shop.folder, tmp_path)
    settings = {"spark.master": cluster.spark, **cluster_settings(cluster.folder, cluster.spark)}
    properties = tmp_path / "spark.properties"
    properties.write_text("".join(f"{key} {value}\n" for key, value in read_secret(settings).items()))
    properties.chmod(0o600)
    jars = ",".join(str(path) for path in sorted((unpacked.folder / "jars").iterdir()))
    send_orders(shop.kafka, f"{shop.prefix}orders", range(ORDERS))

    done = subprocess.run(
        [
            str(unpacked.python.with_name("spark-submit")), "--properties-file", str(properties),
            "--driver-memory", "1g", "--jars", jars, str(unpacked.folder / "main.py"),
            "run", "--until-caught-up", "--no-page",
        ],
        cwd=tmp_path,
        env=unpacked.env(
            KAFKA=shop.kafka,
            POSTGRES_URL=shop.postgres,
            PREFIX=shop.prefix,
            TABLE="packaged",
            PYSPARK_PYTHON=str(unpacked.python),
            PYSPARK_DRIVER_PYTHON=str(unpacked.python),
            SPARK_LOCAL_IP="127.0.0.1",
        ),
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-4000:]
    (shop.folder / "lake").symlink_to(unpacked.project / "lake")
    assert_all_sinks_have(shop, "packaged", ORDERS)
