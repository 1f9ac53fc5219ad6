"""The command on a script, in a process of its own: arguments after the file, one JSON object, an exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
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
try:
    fs.S3FileSystem(
        access_key="a", secret_key="b", region="r", scheme="http", endpoint_override=f"127.0.0.1:{port}",
        connect_timeout=1, request_timeout=1, retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
    ).get_file_info("bucket")
except OSError:
    pass
print("said by the script")
counts = spark.readStream.format("rate").load().groupBy("value").count()
query = counts.writeStream.format("console").start()
query.awaitTermination()
"""
# `counts` has no watermark.
LINE = SCRIPT[: SCRIPT.index("counts = ")].count("\n") + 1


@dataclass(frozen=True)
class Checked:
    """A check that has ended, the folder in which it ran, and what it should not have touched."""

    process: subprocess.CompletedProcess[str]
    folder: Path
    outside: Path
    server: socket.socket

    @property
    def data(self) -> dict[str, Any]:
        """What it printed."""
        data: dict[str, Any] = json.loads(self.process.stdout)
        return data


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    """One process for all that is looked at."""
    outside, folder = tmp_path_factory.mktemp("outside"), tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        command = [sys.executable, "-m", "millstream", "check", "--json", "job.py", str(outside), port]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)
        yield Checked(done, folder, outside, server)


def test_check_takes_a_script_with_its_arguments(checked: Checked) -> None:
    assert checked.process.returncode == 1, checked.process.stderr
    assert [(finding["code"], finding["line"]) for finding in checked.data["findings"]] == [("MS201", LINE)]
    assert [path.name for path in checked.folder.iterdir()] == ["job.py"]


def test_packages_in_c_and_workers_write_nothing_and_reach_nobody(checked: Checked) -> None:
    assert [query["judged"] for query in checked.data["queries"]] == [True], checked.process.stderr
    if "the kernel does not protect files" not in checked.process.stderr:
        assert list(checked.outside.iterdir()) == []
    if "the kernel does not cut off the network" not in checked.process.stderr:
        checked.server.settimeout(0)
        with pytest.raises(BlockingIOError):
            checked.server.accept()
