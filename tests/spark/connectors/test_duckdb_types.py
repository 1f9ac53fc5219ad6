"""The check refuses the types that do not come back from DuckDB as they went, and hardly any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.registry import sinks
from millstream.diagnostics.failure import MillstreamError
from millstream.spark.session_scope import separate_session
from millstream.spec.output_mode import OutputMode
from spark.connectors.test_sink_types import VALUES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

MORE = {
    # With a field that may be NULL; the page says what else is refused.
    "struct<a:int>": "named_struct('a', try_cast('1' AS INT))",
    "tinyint": "CAST(-128 AS TINYINT)",
    "bigint": "9223372036854775807",
    "float": "CAST('NaN' AS FLOAT)",
    "decimal(38,10)": "CAST('-1234567890123456789012345678.0123456789' AS DECIMAL(38, 10))",
    "date": "DATE'0001-01-01'",
    "timestamp": "TIMESTAMP'2020-07-01 00:00:00.123456 Europe/Berlin'",
    "array<struct<a:string,b:map<string,date>>>": "array(named_struct('a', 'ä', 'b', map('x', DATE'2020-01-01')))",
}


# DuckDB stores a time in nanoseconds, a column without a type takes no later value, and a variant alone is refused.
CAUTION = {"time(6)", "void", "array<void>", "array<variant>"}


def test_a_type_comes_back_as_it_went_or_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    sink = sinks()["duckdb"].model_validate({"path": str(tmp_path / "types.duckdb"), "table": "types"})
    values = VALUES | MORE
    refused = [ddl for ddl in values if sink.refuses({"id": "int", "c": ddl})]

    def find_changed(table: str, *types: str) -> set[str]:
        """Write a value of each type and a NULL, and compare what comes back."""
        columns = ", ".join(f"{values[ddl]} AS c{number}" for number, ddl in enumerate(types))
        nulls = ", ".join("NULL" for _ in types)
        frame = spark.sql(f"SELECT 1 AS id, {columns} UNION ALL SELECT 2, {nulls}")
        other = sink.into(table)
        writer = other.writer(SinkIdentity("shop", "types", "one", f"duckdb:{table}", OutputMode.APPEND))
        writer.open(spark, frame.schema)
        writer.write(frame, 0)
        back = other.read_all(spark, frame.schema, OutputMode.APPEND).orderBy("id").collect()
        sent = frame.orderBy("id").collect()
        assert len(back) == len(sent) == 2
        return {
            ddl
            for number, ddl in enumerate(types)
            if [repr(row[f"c{number}"]) for row in back] != [repr(row[f"c{number}"]) for row in sent]
        }

    failed = set()
    for number, ddl in enumerate(refused):
        try:
            failed |= find_changed(f"t{number}", ddl)
        except (PySparkException, MillstreamError, TypeError, pa.ArrowException):
            failed.add(ddl)

    assert find_changed("all_others", *(ddl for ddl in values if ddl not in refused)) == set()
    assert set(refused) - failed <= CAUTION


@pytest.mark.parametrize(
    ("zone", "seen", "day"),
    [
        ("UTC", "2026-01-01 02:30:00", "2026-01-01"),
        ("America/New_York", "2025-12-31 21:30:00", "2025-12-31"),
    ],
)
def test_the_zone_of_the_session_decides_times_without_one(
    zone: str, seen: str, day: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "zones.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE zones (seen TIMESTAMP, day DATE, instant TIMESTAMPTZ)")
    sink = sinks()["duckdb"].model_validate({"path": path, "table": "zones", "merge_on": "seen"})
    with separate_session(spark, {"spark.sql.session.timeZone": zone}) as session:
        instant = "TIMESTAMP'2026-01-01 02:30:00Z'"
        frame = session.sql(f"SELECT {instant} AS seen, {instant} AS day, {instant} AS instant")
        writer = sink.writer(SinkIdentity("shop", "zones", "one", "duckdb", OutputMode.APPEND))
        writer.open(session, frame.schema)
        for batch_id in range(2):
            writer.write(frame, batch_id)
        columns = frame.select("seen", "instant")
        back = sink.read_all(session, columns.schema, OutputMode.APPEND)
        assert back.collect() == columns.collect()

    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT seen::VARCHAR, day::VARCHAR FROM zones").fetchall() == [(seen, day)]


@pytest.mark.parametrize(
    ("kind", "sent", "stored", "zone"),
    [
        ("TIMESTAMP_S", "TIMESTAMP'2026-01-01 02:30:00Z'", "2025-12-31 21:30:00", "America/New_York"),
        ("TIMESTAMP_MS", "TIMESTAMP'2026-01-01 02:30:00Z'", "2025-12-31 21:30:00", "America/New_York"),
        ("TIMESTAMP_NS", "TIMESTAMP'2026-01-01 02:30:00Z'", "2025-12-31 21:30:00", "America/New_York"),
        ("TIME", "TIMESTAMP'2026-01-01 02:30:00Z'", "21:30:00", "America/New_York"),
        ("VARCHAR", "TIMESTAMP'2026-01-01 02:30:00.5Z'", "2025-12-31 21:30:00.5-05", "America/New_York"),
        ("VARCHAR", "TIMESTAMP'2026-01-01 02:30:00Z'", "2026-01-01 08:00:00+05:30", "Asia/Kolkata"),
        ("TIMESTAMPTZ", "TIMESTAMP_NTZ'2025-12-31 21:30:00'", "2026-01-01 02:30:00+00", "America/New_York"),
        ("TIMESTAMPTZ", "DATE'2026-01-01'", "2025-12-31 15:00:00+00", "Asia/Tokyo"),
    ],
)
def test_each_pair_of_types_with_and_without_a_zone_is_converted_in_the_zone_of_the_session(
    kind: str, sent: str, stored: str, zone: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "zones.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE zones (seen {kind})")
    sink = sinks()["duckdb"].model_validate({"path": path, "table": "zones"})
    with separate_session(spark, {"spark.sql.session.timeZone": zone}) as session:
        frame = session.sql(f"SELECT {sent} AS seen")
        writer = sink.writer(SinkIdentity("shop", "zones", "one", "duckdb", OutputMode.APPEND))
        writer.open(session, frame.schema)
        writer.write(frame, 0)
        if kind != "TIME":
            back = sink.read_all(session, frame.schema, OutputMode.APPEND)
            assert back.collect() == frame.collect()

    with duckdb.connect(path) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        assert connection.execute("SELECT seen::VARCHAR FROM zones").fetchall() == [(stored,)]
