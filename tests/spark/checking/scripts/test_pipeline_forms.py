"""Declarative pipelines as Databricks and others write them: with `dlt`, in SQL, in bundles and folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_project_at
from millstream.checking.targets import find_targets
from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

FORMS = Path(__file__).parents[3] / "scripts" / "forms"


@pytest.fixture(autouse=True)
def _in_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FORMS)
    monkeypatch.setattr("millstream.checking.scripts.interception.call_sites._start", [FORMS])


def places(checked: CheckResult) -> list[tuple[str, str]]:
    """Code and place of each error and warning."""
    return [
        (one.code, f"{one.span.file}:{one.span.line}" if one.span else "")
        for one in checked.findings
        if str(one.severity) != "info"
    ]


def test_the_keys_of_a_spec_tell_that_it_is_of_a_declarative_project(spark: SparkSession) -> None:
    checked = check_project_at(spark, FORMS / "named_project" / "totals.pipeline.yml")

    assert [query.name for query in checked.judged or ()] == ["totals", "clicks", "rates"]
    assert {one.code for one in checked.findings} == {"MS113", "MS201"}


def test_tables_of_dlt_are_flows(spark: SparkSession) -> None:
    checked = check_project_at(spark, FORMS / "dlt" / "medallion.py")

    assert [query.name for query in checked.judged or ()] == ["bronze", "silver", "gold"]
    assert places(checked) == [("MS201", "dlt/medallion.py:13")]


def test_tables_of_dlt_in_a_notebook_are_flows(spark: SparkSession) -> None:
    checked = check_project_at(spark, FORMS / "dlt" / "bakery.ipynb")

    assert [query.name for query in checked.judged or ()] == ["loaves", "takings", "shops"]
    assert places(checked) == [("MS201", "dlt/bakery.ipynb#cell-3:3")]


def check_files(spark: SparkSession, folder: Path, **texts: str) -> CheckResult:
    """Check a folder with these files of Python, by their names."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return check_project_at(spark, folder)


@pytest.mark.parametrize("package", [True, False])
def test_a_folder_named_dlt_is_not_the_module(spark: SparkSession, tmp_path: Path, *, package: bool) -> None:
    folder = tmp_path / "dlt"
    folder.mkdir()
    if package:
        (folder / "__init__.py").touch()
    text = "import dlt\n\n@dlt.table\ndef {}():\n    return spark.readStream.format('rate').load()\n"

    checked = check_files(spark, folder, piers=text.format("piers"), cranes=text.format("cranes"))

    assert [finding.message for finding in checked.findings] == []
    assert sorted(query.name for query in checked.judged or ()) == ["cranes", "piers"]


def test_a_table_that_starts_a_query_is_a_mistake_of_its_project(spark: SparkSession, tmp_path: Path) -> None:
    quay = tmp_path / "port" / "quay"
    quay.mkdir(parents=True)
    text = "import dlt\n\n@dlt.table\ndef {}():\n    return {}\n"
    rates = "spark.readStream.format('rate').load()"
    (quay / "piers.py").write_text(text.format("piers", rates))
    (quay / "cranes.py").write_text(
        text.format(
            "cranes", "dlt.read_stream('piers').writeStream.option('checkpointLocation', '/c').start('/d')"
        )
    )

    (target,) = find_targets([quay])
    checked = check_project_at(spark, target.path)

    assert "piers" in [query.name for query in checked.judged or ()]
    assert [(one.code, one.query) for one in checked.findings if one.severity is Severity.ERROR] == [
        ("MS118", "cranes")
    ]


def test_a_schema_of_databricks_may_have_generated_columns_and_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    flows = '''
import dlt

@dlt.table(schema="""
    number BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 1),
    value BIGINT NOT NULL,
    day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
    at TIMESTAMP,
    CONSTRAINT tides_pk PRIMARY KEY (number)
""")
def tides():
    return spark.readStream.format("rate").load().withColumnRenamed("timestamp", "at")

@dlt.table
def days():
    return dlt.read("tides").select("number", "day")
'''
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [finding.message for finding in checked.findings] == []
    assert [query.name for query in checked.judged or ()] == ["tides", "days"]


def test_rows_of_a_pipeline_are_converted_to_the_types_of_their_schema(
    spark: SparkSession, tmp_path: Path
) -> None:
    flows = """
from pyspark import pipelines as dp

@dp.materialized_view
def depths():
    return spark.createDataFrame([("north", 4)], "pier STRING, depth FLOAT")
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [finding.message for finding in checked.findings] == []


def test_a_sink_of_dlt_may_be_a_function_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    flows = """
import dlt

@dlt.foreach_batch_sink(name="berths")
def store(batch, number):
    batch.write.mode("append").saveAsTable("port.berths")

@dlt.append_flow(target="berths")
def to_berths():
    return spark.readStream.format("rate").load().groupBy("value").count()
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [(query.name, query.reason) for query in checked.judged or ()] == [("to_berths", "")]
    assert [finding.code for finding in checked.findings] == ["MS201"]


@pytest.mark.parametrize("module", ["import dlt as dp", "from pyspark import pipelines as dp"])
def test_a_pipeline_of_databricks_runs_in_utc(spark: SparkSession, tmp_path: Path, module: str) -> None:
    flows = f"""
{module}
from pyspark.sql.functions import date_trunc

@dp.table
@dp.expect("has time", "at IS NOT NULL")
def tides():
    return spark.readStream.schema("pier STRING, at TIMESTAMP").json("/Volumes/port/tides")

@dp.table
def hours():
    tides = dp.read_stream("tides").withWatermark("at", "1 hour")
    return tides.groupBy(date_trunc("hour", "at").alias("hour")).count()
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [query.name for query in checked.judged or ()] == ["tides", "hours"]
    assert "MS213" not in [finding.code for finding in checked.findings]


def test_an_append_flow_of_dlt_reads_a_stream_unless_it_runs_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    flows = """
import dlt

dlt.create_streaming_table("ships")

@dlt.append_flow(target="ships")
def northern():
    return spark.read.table("port.raw.north")

@dlt.append_flow(target="ships", once=True)
def former():
    return spark.read.table("port.raw.former")

@dlt.append_flow(target="ships")
def southern():
    return spark.readStream.table("port.raw.south")

@dlt.table
def names():
    return spark.read.table("port.raw.names")
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [(finding.code, finding.query) for finding in checked.findings if finding.code != "MS113"] == [
        ("MS118", "northern")
    ]


def test_changes_of_a_table_have_the_keys_that_they_name(spark: SparkSession, tmp_path: Path) -> None:
    flows = """
from pyspark import pipelines as dp

dp.create_streaming_table("ships")
dp.create_auto_cdc_flow(target="ships", source="port.raw.ships", keys=["imo"], sequence_by="seen_at")
dp.create_streaming_table("copies")

@dp.append_flow(target="copies")
def copied():
    return spark.readStream.table("port.raw.ships")
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert {query.name: not query.reason for query in checked.judged or ()} == {
        "ships": True,
        "copied": True,
    }


def test_tables_of_one_name_in_two_schemas_from_settings_are_two_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = """
from pyspark import pipelines as dp

silver, gold = spark.conf.get("silver"), spark.conf.get("gold")

@dp.table(name=f"{gold}.ships")
def ships():
    return spark.read.table(f"{silver}.ships").distinct()
"""
    checked = check_files(spark, tmp_path / "port", flows=text)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}


def test_the_files_of_a_folder_that_declare_tables_are_one_project(spark: SparkSession) -> None:
    (target,) = find_targets([FORMS / "tables"])
    checked = check_project_at(spark, target.path)

    assert [query.name for query in checked.judged or ()] == [
        "parcels",
        "newest",
        "light",
        "depots",
        "weights",
    ]
    assert places(checked) == [("MS118", "tables/daily.py:11"), ("MS118", "tables/reports.sql:5")]
    assert [finding.code for finding in checked.findings if finding.severity is Severity.INFO] == []


def test_live_tables_in_sql_alone_are_flows(spark: SparkSession) -> None:
    (target,) = find_targets([FORMS / "live"])
    checked = check_project_at(spark, target.path)

    judged = {query.name: not query.reason for query in checked.judged or ()}
    assert judged == {
        "arrivals": True,
        "ships": True,
        "per_flag": True,
        "filled": True,
    }
    assert places(checked) == [("MS118", "live/arrivals.sql:19")]


def test_the_pipelines_of_a_bundle_are_one_project(spark: SparkSession) -> None:
    (target,) = find_targets([FORMS / "bundle"])
    checked = check_project_at(spark, target.path)

    judged = {query.name.rpartition(".")[2]: not query.reason for query in checked.judged or ()}
    assert judged == dict.fromkeys(["arrivals", "per_gate", "gates", "late"], True)
    assert places(checked) == [
        ("MS118", "bundle/src/port_flows/late.sql:4"),
        ("MS201", "bundle/src/port_flows/silver.py:11"),
    ]


def test_what_only_databricks_has_is_accepted(spark: SparkSession, tmp_path: Path) -> None:
    flows = """
from dataclasses import dataclass
from pyspark import pipelines as dp

@dataclass(frozen=True)
class Port:
    name: str

@dp.on_event_hook(max_allowable_consecutive_failures=3)
def hook(event):
    pass

@dp.materialized_view(name="ships", private=True)
def ships():
    return spark.range(3)

if __name__ == "__main__":
    @dp.table(name=Port("cranes").name)
    def cranes():
        return spark.readStream.format("rate").load()
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [finding.message for finding in checked.findings if str(finding.severity) == "error"] == []
    assert sorted(query.name for query in checked.judged or ()) == ["cranes", "ships"]


def test_an_error_about_unknown_columns_is_not_one_of_the_flow(spark: SparkSession, tmp_path: Path) -> None:
    flows = """
from pyspark import pipelines as dp

def with_keys(frame):
    missing = [name for name in ("imo", "seen_at") if name not in frame.columns]
    if missing:
        raise ValueError(f"columns {missing} are not among {frame.columns}")
    if frame.schema["imo"].dataType != frame.schema["seen_at"].dataType:
        raise ValueError(f"types differ: {frame.schema}")
    return frame

@dp.table
def ships():
    return with_keys(spark.readStream.table("port.raw.ships"))
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [finding.code for finding in checked.findings if str(finding.severity) == "error"] == []
    assert [(query.name, query.reason) for query in checked.judged or ()] == [("ships", "")]


def test_files_and_changes_in_sql_are_judged(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "ships.sql").write_text("""CREATE OR REFRESH STREAMING TABLE raw AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files("/Volumes/port/ships", format => "csv");

CREATE OR REFRESH STREAMING TABLE ships;
APPLY CHANGES INTO ships FROM STREAM(raw) KEYS (imo)
APPLY AS DELETE WHEN operation = 'DELETE'
SEQUENCE BY seen_at COLUMNS * EXCEPT (operation, seen_at) STORED AS SCD TYPE 2;

CREATE OR REFRESH MATERIALIZED VIEW now AS SELECT flag, count(*) AS n FROM ships WHERE __END_AT IS NULL GROUP BY flag;
CREATE OR REFRESH STREAMING TABLE per_flag AS SELECT flag, count(*) AS n FROM STREAM(raw) GROUP BY flag;
""")
    checked = check_project_at(spark, tmp_path)

    judged = {query.name: query.reason for query in checked.judged or ()}
    assert judged == dict.fromkeys(["raw", "ships", "now", "per_flag"], "")
    assert [finding.code for finding in checked.findings if str(finding.severity) != "info"] == ["MS201"]


def test_a_flow_may_use_the_utilities_of_databricks(spark: SparkSession, tmp_path: Path) -> None:
    flows = """
import dlt

@dlt.table
def ships():
    kafka = spark.readStream.format("kafka").option("subscribe", "ships")
    return kafka.option("kafka.bootstrap.servers", dbutils.secrets.get(scope="port", key="brokers")).load()
"""
    checked = check_files(spark, tmp_path / "port", flows=flows)

    assert [finding.code for finding in checked.findings if finding.severity is Severity.ERROR] == []
    assert [(query.name, query.reason) for query in checked.judged or ()] == [("ships", "")]


def test_a_file_that_lacks_the_import_is_a_mistake_of_its_project(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "@dlt.table\ndef {}():\n    return spark.readStream.format('rate').load()\n"
    for name, head in (("piers", "import dlt\n\n"), ("cranes", "import dlt\n\n"), ("ships", "\n\n")):
        folder = tmp_path / "port" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(head + text.format(name))

    (target,) = find_targets([tmp_path / "port"])
    checked = check_project_at(spark, target.path)

    (error,) = [finding for finding in checked.findings if finding.severity is Severity.ERROR]
    assert (error.code, error.message) == (
        "MS114",
        "the file ends here: NameError: name 'dlt' is not defined",
    )
    assert [query.name for query in checked.judged or ()] == ["cranes", "piers"]
