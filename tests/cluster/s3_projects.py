"""The bucket of the tests: what a project has written there, read without Spark, and code in a process with Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import S3FileSystem

from cluster.remote_project import FILES, ROWS
from millstream.connectors.api.values.bucket_options import set_bucket_settings, storage_options
from millstream.devstack.supervisor.state import Home
from millstream.spec.location import S3_SCHEME

if TYPE_CHECKING:
    from acceptance.project import Project
    from millstream.devstack.supervisor.state import Endpoints

READER = """
import json, sys
from millstream.spark.session import open_session, stop_session
from millstream.spark.settings import S3_CHECKPOINTS

conf = S3_CHECKPOINTS | {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2}
spark = open_session("reader", conf | json.loads(sys.argv[1]))
for line in sys.stdin:
    question, names = json.loads(line)
    names["spark"] = spark
    exec(question, names)
    print("ANSWER " + json.dumps(names["answer"]), flush=True)
stop_session(spark)
"""
# A driver that is suspended or killed renews no lease, so that the shortest time tells it from one that lives.
CATCH_UP = """
import os
from functools import partial
from pathlib import Path

from commands import call, shared_spark
from millstream.checkpoint import lock
from millstream.checkpoint.remote.lease import Lease

lock.Lease = partial(Lease, lapse=1.0)
with shared_spark(spark):
    done = call(Path(folder), "run", "--until-caught-up", "--no-page", *words, env=os.environ)
lock.Lease = Lease
answer = [done.returncode, done.stderr]
"""


class S3Process:
    """A process with Spark and the client of S3, which the session of the tests does not have."""

    def __init__(self, conf: dict[str, str], folder: Path) -> None:
        self._errors = folder / "reader.err"
        path = os.pathsep.join(
            [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", READER, json.dumps(conf)],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def ask(self, question: str, **names: object) -> Any:
        """Run code that sets `answer`, with the session as `spark` and with these names, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([question, names]) + "\n")
        self._process.stdin.flush()
        line = next((line for line in self._process.stdout if line.startswith("ANSWER ")), None)
        assert line is not None, self._errors.read_text()[-3000:]
        return json.loads(line.removeprefix("ANSWER "))

    def catch_up(self, project: Project, *words: str) -> None:
        """Run a project until it is caught up, after a driver that was suspended or killed."""
        code, errors = self.ask(CATCH_UP, folder=str(project.folder), words=words)
        assert code == 0, errors

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


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
