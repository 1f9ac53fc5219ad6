"""The bucket of the tests, and what a project has written there, read by a process with a client of S3."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

from cluster.remote_project import FILES, ROWS

READER = """
import json, sys
from millstream.spark.session import open_session, stop_session

root, conf = sys.argv[1], json.loads(sys.argv[2])
spark = open_session("reader", {"spark.master": "local[1]", "spark.driver.memory": "1g", **conf})
HERE
print("ANSWER " + json.dumps(answer))
stop_session(spark)
"""
ROWS_OF_PROJECT = """
answer = {
    "files": spark.read.parquet(f"{root}/files").select("id").toArrow()["id"].to_pylist(),
    "table": spark.read.format("delta").load(f"{root}/table").select("id").toArrow()["id"].to_pylist(),
    "totals": {row["user"]: row["orders"] for row in
               spark.read.format("delta").load(f"{root}/totals").toArrow().to_pylist()},
    "letters": spark.read.format("delta").load(f"{root}/letters").toArrow()["query"].to_pylist(),
}
"""


def ask(root: str, conf: dict[str, str], question: str) -> dict[str, object]:
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
    stored = ask(root, conf, ROWS_OF_PROJECT)

    assert Counter(stored["files"]) == everything  # type: ignore[arg-type]
    assert Counter(stored["table"]) == everything  # type: ignore[arg-type]
    assert stored["totals"] == Counter(f"u{n % 7}" for n in range(files * ROWS))
    assert Counter(stored["letters"]) == {"orders": files, "totals": files}  # type: ignore[arg-type]
