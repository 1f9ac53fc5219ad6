"""The command on a script: arguments after the file, one JSON object, an exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3] / "scripts"


def test_check_takes_a_script_with_its_arguments(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "millstream",
        "check",
        "--json",
        str(HOME / "socket_words.py"),
        "localhost",
        "9",
    ]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)

    data = json.loads(result.stdout)
    assert result.returncode == 1
    assert [(finding["code"], finding["line"]) for finding in data["findings"]] == [("MS201", 18)]
    assert list(tmp_path.iterdir()) == []


ESCAPES = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer
from pyspark.sql import SparkSession, functions as F

folder, port = sys.argv[1:]
try:
    pq.write_table(pa.table({"n": [1]}), f"{folder}/by_arrow")
except OSError:
    pass

@F.udf("long")
def writes(n):
    try:
        open(f"{folder}/by_worker", "w").close()
    except OSError:
        pass
    return n

spark = SparkSession.builder.getOrCreate()
assert len(spark.range(2).select(writes("id")).collect()) == 2
producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
producer.produce("topic", b"x")
producer.flush(1)
query = spark.readStream.format("rate").load().writeStream.format("console").start()
query.awaitTermination()
"""


def test_packages_in_c_and_workers_write_nothing_and_reach_nobody(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(ESCAPES)
    outside = tmp_path / "outside"
    outside.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        command = [
            sys.executable,
            "-m",
            "millstream",
            "check",
            "job.py",
            str(outside),
            str(server.getsockname()[1]),
        ]

        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)

        assert "1 of 1 query judged" in done.stdout, done.stdout + done.stderr
        if "the kernel does not protect files" not in done.stderr:
            assert list(outside.iterdir()) == []
        if "the kernel does not cut off the network" not in done.stderr:
            with pytest.raises(BlockingIOError):
                server.accept()
