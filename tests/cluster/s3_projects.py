"""The bucket of the tests: what a project has written there, read without Spark, and code in a process with Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import S3FileSystem

from cluster.remote_project import FILES, ROWS
from millstream.connectors.api.values.bucket_options import set_bucket_settings, storage_options
from millstream.devstack.supervisor.state import Home
from millstream.spec.location import S3_SCHEME

if TYPE_CHECKING:
    from millstream.devstack.supervisor.state import Endpoints

READER = """
import json, sys
from millstream.spark.session import open_session, stop_session

root, conf = sys.argv[1], json.loads(sys.argv[2])
spark = open_session("reader", {"spark.master": "local[1]", "spark.driver.memory": "1g", **conf})
HERE
print("ANSWER " + json.dumps(answer))
stop_session(spark)
"""


def ask(root: str, conf: dict[str, str], question: str) -> dict[str, Any]:
    """Run code that sets `answer`, in a process of its own: the session of the tests has no client of S3."""
    done = subprocess.run(
        [sys.executable, "-c", READER.replace("HERE", question), root, json.dumps(conf)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("ANSWER ")[2])  # type: ignore[no-any-return]


def assert_each_row_is_there_once(root: str, conf: dict[str, str], files: int = FILES) -> None:
    """Check files, tables and dead letters of the project of `remote_project`, which has so many input files."""
    everything = Counter(range(files * ROWS))
    set_bucket_settings(conf)

    assert Counter(_read_files(f"{root}/files", "id")) == everything
    assert Counter(_read_table(f"{root}/table", "id")) == everything
    totals = zip(_read_table(f"{root}/totals", "user"), _read_table(f"{root}/totals", "orders"), strict=True)
    assert sorted(totals) == sorted(Counter(f"u{n % 7}" for n in range(files * ROWS)).items())
    assert Counter(_read_table(f"{root}/letters", "query")) == {"orders": files, "totals": files}


def read_objects(stack: Endpoints, root: str) -> dict[str, bytes]:
    """Return the objects below a folder of the bucket, by name; the server keeps each in a file."""
    folder = Home(stack.folder) / "s3" / "data" / root.removeprefix(f"{S3_SCHEME}").lstrip("/")
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _read_table(place: str, column: str) -> list[Any]:
    """Return a column of a Delta table."""
    table = DeltaTable(place, storage_options=storage_options(place))
    return table.to_pyarrow_table(columns=[column])[column].to_pylist()  # type: ignore[no-any-return]


def _read_files(place: str, column: str) -> list[Any]:
    """Return a column of a folder of Parquet files; names that begin with an underscore are passed over."""
    options = storage_options(place) or {}
    system = S3FileSystem(
        access_key=options["AWS_ACCESS_KEY_ID"],
        secret_key=options["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=options["AWS_ENDPOINT_URL"],
        region=options.get("AWS_REGION", "us-east-1"),
    )
    folder = place.removeprefix(S3_SCHEME).lstrip("/")
    files = ds.dataset(folder, filesystem=system, format="parquet")
    return files.to_table(columns=[column])[column].to_pylist()  # type: ignore[no-any-return]
