"""A project that `init` writes from files passes its check, and reads these very records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from millstream.checking.check import check
from millstream.cli.main import run_command
from millstream.pipeline.spec_file import load_spec
from millstream.spark.session_scope import separate_session
from millstream.testing.samples import preview_view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMES = [NOON + timedelta(seconds=20 * number) for number in range(9)]


def put_json(folder: Path, to_value: Callable[[datetime], Any]) -> None:
    rows = [
        {"id": number, "at": to_value(time), "user": {"name": "ada", "tags of": [1]}, "from": "x", "ID": 2}
        for number, time in enumerate(TIMES)
    ]
    (folder / "a.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def put_csv(folder: Path, to_value: Callable[[datetime], Any]) -> None:
    lines = [f"{number};{to_value(time)};" for number, time in enumerate(TIMES)]
    (folder / "a.csv").write_text("\n".join(["id;at;a note", *lines]))


def put_parquet(folder: Path, to_value: Callable[[datetime], Any]) -> None:
    column = pa.array([to_value(time) for time in TIMES])
    parquet.write_table(pa.table({"id": [*range(9)], "at": column}), folder / "a.parquet")


def iso(time: datetime) -> str:
    return time.isoformat()


def seconds(time: datetime) -> int:
    return round(time.timestamp())


def millis(time: datetime) -> int:
    return seconds(time) * 1000


def micros(time: datetime) -> int:
    return seconds(time) * 1_000_000


def local(time: datetime) -> datetime:
    return time.replace(tzinfo=None)


def nothing(_: datetime) -> str:
    return "no time"


@pytest.mark.parametrize(
    ("put", "to_value"),
    [
        *((put_json, to_value) for to_value in (iso, seconds, millis, micros, nothing)),
        *((put_csv, to_value) for to_value in (iso, seconds)),
        *((put_parquet, to_value) for to_value in (local, millis)),
    ],
)
def test_the_project_passes_its_check_and_counts_the_records(
    spark: SparkSession, tmp_path: Path, put: Callable[..., None], to_value: Callable[[datetime], Any]
) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", to_value)

    assert run_command(["init", str(tmp_path), "--from-files", str(tmp_path / "in")]) == 0

    loaded = load_spec(tmp_path / "pipeline.yml", {})
    with separate_session(spark, {"spark.sql.session.timeZone": "UTC"}) as session:
        checked = check(loaded, session)
    assert [(finding.code, finding.message) for finding in checked.findings] == []
    assert loaded.pipeline is not None
    shown = next(iter(loaded.pipeline.views), "in_records")
    shown = shown if not shown.endswith("_timed") else shown.replace("_timed", "_by_minute")
    rows = preview_view(spark, loaded.pipeline, shown, [], 20, NOON, live=False).rows
    if to_value is nothing:
        assert len(rows) == 9
    else:
        assert [[row[0].replace(tzinfo=UTC), row[1]] for row in rows] == [
            [NOON + timedelta(minutes=minute), 3] for minute in (2, 1, 0)
        ]


@pytest.mark.parametrize("folder", ["in/2026/01", "in/day=2026-01-01"])
def test_the_project_reads_the_files_in_folders(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    put_json(tmp_path / folder, iso)

    assert run_command(["init", str(tmp_path), "--from-files", str(tmp_path / "in")]) == 0

    pipeline = load_spec(tmp_path / "pipeline.yml", {}).pipeline
    assert pipeline is not None
    entry = pipeline.sources["in_records"]
    assert entry.source.read(spark, static=True, schema=entry.ddl).count() == len(TIMES)
