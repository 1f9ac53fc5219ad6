"""Declarative-pipelines projects: each flow is judged, at the line of its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_script
from millstream.checking.scripts.declarative.check import check_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult
    from millstream.diagnostics.finding import Finding

HOME = Path(__file__).parents[3] / "scripts" / "projects"
SPEC = "name: small\nstorage: file:///lake/small\nlibraries: [{glob: {include: flows.sql}}]\n"


def checked(spark: SparkSession, folder: Path, sql: str, spec: str = SPEC) -> list[Finding]:
    """What a project of one file of SQL gives."""
    (folder / "spark-pipeline.yml").write_text(spec)
    (folder / "flows.sql").write_text(sql)
    return check_project(spark, folder / "spark-pipeline.yml").findings


@pytest.mark.parametrize(
    ("project", "file", "code"), [("sql", "totals.sql", "MS201"), ("python", "tables.py", "MS311")]
)
def test_the_one_fault_of_a_project_is_found_on_its_line(
    spark: SparkSession, project: str, file: str, code: str
) -> None:
    (finding,) = check_project(spark, HOME / project / "spark-pipeline.yml").findings

    assert finding.span is not None
    line = (Path(finding.span.file)).read_text(encoding="utf-8").splitlines()[finding.span.line - 1]
    assert (Path(finding.span.file).name, finding.code) == (file, code)
    assert f"error: [{code}]" in line


def test_a_streaming_table_that_reads_no_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (finding,) = checked(spark, tmp_path, "CREATE STREAMING TABLE t AS SELECT 1 AS a;")

    assert (finding.code, finding.span.line if finding.span else 0) == ("MS118", 1)
    assert "BATCH_RELATION_FOR_STREAMING_TABLE" in finding.why


def test_a_streaming_table_over_tables_outside_the_pipeline_reads_no_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = "CREATE STREAMING TABLE t AS SELECT a FROM prod.sales.orders JOIN prod.sales.users USING (id);"

    found = [(finding.code, str(finding.severity)) for finding in checked(spark, tmp_path, sql)]

    assert ("MS118", "error") in found


def test_a_stream_joined_with_a_table_outside_the_pipeline_is_not_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = (
        "CREATE STREAMING TABLE t AS SELECT a FROM STREAM prod.sales.orders JOIN prod.sales.users USING (id);"
    )

    assert {str(finding.severity) for finding in checked(spark, tmp_path, sql)} == {"info"}


def test_the_template_of_a_spec_may_have_its_storage_filled_in(spark: SparkSession, tmp_path: Path) -> None:
    spec = SPEC.replace("file:///lake/small", "${STORAGE}")

    assert checked(spark, tmp_path, "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;", spec) == []


def test_a_flow_into_nothing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (finding,) = checked(spark, tmp_path, "\nCREATE FLOW f AS INSERT INTO nowhere BY NAME SELECT 1 AS a;")

    assert (finding.message, finding.span.line if finding.span else 0) == (
        "flow 'f' writes 'nowhere', which nothing declares",
        2,
    )


def test_tables_that_read_each_other_in_a_circle_are_told(spark: SparkSession, tmp_path: Path) -> None:
    sql = "CREATE MATERIALIZED VIEW a AS SELECT * FROM b;\nCREATE MATERIALIZED VIEW b AS SELECT * FROM a;"

    findings = checked(spark, tmp_path, sql)

    assert any("reads itself" in finding.message for finding in findings)


def test_an_unknown_column_is_marked_in_its_statement(spark: SparkSession, tmp_path: Path) -> None:
    sql = "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;\nCREATE MATERIALIZED VIEW b AS\nSELECT y FROM a;"

    (finding,) = checked(spark, tmp_path, sql)

    assert finding.span is not None
    assert (finding.span.line, finding.span.column, finding.span.end_column) == (3, 8, 9)


def test_a_table_outside_the_pipeline_has_the_columns_that_the_pipeline_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    (finding,) = checked(
        spark, tmp_path, "CREATE STREAMING TABLE t AS SELECT id FROM STREAM prod.sales.orders;"
    )

    assert (finding.code, str(finding.severity)) == ("MS113", "info")
    assert finding.message.endswith("the check assumes that it has the columns that the script uses")


def test_a_pattern_of_the_folder_itself_has_no_files(spark: SparkSession, tmp_path: Path) -> None:
    (finding,) = checked(spark, tmp_path, "", SPEC.replace("flows.sql", "."))[:1]

    assert (finding.code, finding.message) == ("MS118", "no file matches '.'")


def test_what_spark_does_not_take_of_a_spec_is_marked(spark: SparkSession, tmp_path: Path) -> None:
    spec = "name: small\nstorage: lake/small\nlibrary: []\n"

    findings = checked(spark, tmp_path, "", spec)

    assert [(finding.code, finding.span.line) for finding in findings if finding.span] == [
        ("MS118", 2),
        ("MS118", 3),
    ]


METERS = """CREATE OR REFRESH STREAMING TABLE meters AS SELECT meter, kwh, tariff
FROM cloud_files("/Volumes/raw/meters", "csv", map("header", "true"));

CREATE OR REFRESH STREAMING TABLE costs AS SELECT meter, kwh * tariff AS cost FROM STREAM(meters);
"""


def test_columns_get_the_types_that_a_later_flow_needs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "meters.sql").write_text(METERS)

    result = check_script(spark, tmp_path)

    assert [query.reason for query in result.judged or ()] == ["", ""]


TABLES = """import json

from pyspark import pipelines as dp

with open("/Workspace/tables.json") as file:
    entries = json.load(file)

for entry in entries:

    @dp.table(name=f"{entry['schema']}.{entry['table']}")
    def rates():
        return spark.readStream.format("rate").load()
"""


def test_a_name_that_is_not_known_is_shown_as_dots(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "tables.py").write_text(TABLES)

    result = check_script(spark, tmp_path)

    assert [(promise.query, promise.sink) for promise in result.promises] == [("….…", "parquet ….…")]
    assert [query.name for query in result.judged or ()] == ["….…"]


def test_a_file_of_sql_is_judged_without_a_spec(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "flows.sql"
    file.write_text(
        "CREATE OR REFRESH STREAMING TABLE harbours AS SELECT * FROM STREAM read_files('/Volumes/port/raw');\n"
        "-- COMMAND ----------\n"
        "CREATE OR REFRESH TEMPORARY STREAMING TABLE ships AS\n"
        "SELECT ship.name, ship.cargo.weight AS weight\n"
        "FROM (SELECT EXPLODE(report.ships) AS ship FROM STREAM(harbours));\n"
    )

    checked = check_project(spark, file)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}
    assert [query.name for query in checked.judged or () if not query.reason] == ["harbours", "ships"]


def test_what_reads_a_flow_that_fails_is_judged(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "tables.py"
    file.write_text(
        "import dlt\n\n\n"
        "@dlt.table\ndef ships():\n    return spark.readStream.table('port.raw').where(undefined)\n\n\n"
        "@dlt.table\ndef names():\n    return dlt.read_stream('ships').select('name')\n\n\n"
        "@dlt.table\ndef copies():\n"
        "    return dlt.read_stream('names').writeStream.format('kafka').option('topic', 'a').start()\n"
    )

    checked = check_project(spark, file)

    errors = [finding.message for finding in checked.findings if str(finding.severity) == "error"]
    assert errors == [
        "flow 'ships': NameError: name 'undefined' is not defined",
        "flow 'copies': its function must return a DataFrame; it returned StreamingQuery",
    ]
    assert "names" in [query.name for query in checked.judged or () if not query.reason]


def test_a_file_of_databricks_gets_all_functions_from_a_star_import(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "tables.py"
    file.write_text(
        "import dlt\nfrom pyspark.sql.functions import *\n\n\n"
        "@dlt.table\ndef ships():\n"
        "    return dlt.read('port.raw').groupBy('port').agg(countDistinct('ship').alias('ships'))\n"
    )

    checked = check_project(spark, file)

    assert not [finding for finding in checked.findings if str(finding.severity) == "error"]
    assert [query.reason for query in checked.judged or ()] == [""]


def test_a_flow_over_a_file_of_pandas_that_is_not_here_is_no_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "tables.py"
    file.write_text(
        "import dlt\nimport pandas as pd\n\n\n"
        "@dlt.table\ndef rides():\n"
        "    rows = pd.read_csv('/Volumes/city/rides.csv')\n"
        "    return spark.createDataFrame(rows)\n"
    )

    checked = check_project(spark, file)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}


def checked_file(spark: SparkSession, file: Path, text: str) -> CheckResult:
    """Check a project of one file, which has no spec."""
    file.write_text(text)
    return check_project(spark, file)


def test_one_file_is_judged_as_its_folder_is(spark: SparkSession, tmp_path: Path) -> None:
    checked = checked_file(
        spark,
        tmp_path / "tables.py",
        """import dlt

def create(name):
    @dlt.table(name=name)
    def rates():
        return spark.readStream.format("rate").load()

if __name__ == "__main__":
    create("piers")
    create("cranes")
""",
    )

    assert [query.name for query in checked.judged or ()] == ["piers", "cranes"]
    assert checked.findings == []


SOURCE = "CREATE STREAMING TABLE raw AS SELECT id, at FROM STREAM port.raw.ships;\n"
FLOW = "AUTO CDC INTO {} FROM STREAM(raw) KEYS (id) SEQUENCE BY at;\n"


@pytest.mark.parametrize(
    ("declared", "target"),
    [
        ("ships LOCATION 's3://port/ships'", "LIVE.ships"),
        ("gold.ships LOCATION 's3://port/ships'", "ships"),
        ("gold.ships", "ships"),
        ("ships", "gold.ships"),
    ],
)
def test_a_flow_writes_the_table_that_another_statement_declares(
    spark: SparkSession, tmp_path: Path, declared: str, target: str
) -> None:
    sql = f"{SOURCE}CREATE OR REFRESH STREAMING TABLE {declared};\n{FLOW.format(target)}"

    checked = checked_file(spark, tmp_path / "ships.sql", sql)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}
    assert {query.name: query.reason for query in checked.judged or ()} == {"raw": "", target: ""}


@pytest.mark.parametrize("order", ["(at, id)", "struct(to_date(at), id)"])
def test_changes_may_be_in_the_order_of_two_columns(spark: SparkSession, tmp_path: Path, order: str) -> None:
    flow = FLOW.replace("BY at", f"BY {order} STORED AS SCD TYPE 2").format("ships")
    sql = f"{SOURCE}CREATE STREAMING TABLE ships;\n{flow}"

    checked = checked_file(spark, tmp_path / "ships.sql", sql)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}
    assert {query.name: query.reason for query in checked.judged or ()} == {"raw": "", "ships": ""}


def test_a_flow_of_changes_may_contain_comments(spark: SparkSession, tmp_path: Path) -> None:
    flow = FLOW.replace("INTO", "-- latest state; KEYS (none)\nINTO /* one */").format("ships")
    sql = f"{SOURCE}CREATE STREAMING TABLE ships;\nCREATE FLOW latest -- nightly\nAS {flow}"

    checked = checked_file(spark, tmp_path / "ships.sql", sql)

    assert {str(finding.severity) for finding in checked.findings} == {"info"}
    assert {query.name: query.reason for query in checked.judged or ()} == {"raw": "", "ships": ""}


def test_a_flow_into_a_table_that_no_statement_declares_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = f"{SOURCE}CREATE OR REFRESH STREAMING TABLE gold.boats;\n{FLOW.format('ships')}"

    findings = checked_file(spark, tmp_path / "ships.sql", sql).findings

    assert [finding.message for finding in findings if str(finding.severity) == "error"] == [
        "streaming table 'gold.boats' has no flow",
        "flow 'ships' writes 'ships', which nothing declares",
    ]


def test_tables_with_unknown_columns_are_joined_using_one_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = (
        "CREATE MATERIALIZED VIEW weights AS SELECT imo, flag, sum(weight) AS weight FROM port.raw.ships "
        "JOIN port.raw.loads USING (imo) JOIN port.raw.flags USING (flag) GROUP BY imo, flag;"
    )

    checked = checked_file(spark, tmp_path / "weights.sql", sql)

    assert [(query.name, query.reason) for query in checked.judged or ()] == [("weights", "")]


def test_a_field_of_a_struct_may_have_a_name_with_a_dot(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "loads.py").write_text(
        "import dlt\nfrom pyspark.sql.functions import lit, struct\n\n\n"
        "@dlt.table\ndef loads():\n    origin = struct(lit('port').alias('from.where'))\n"
        "    return spark.readStream.table('port.raw.loads').withColumn('origin', origin)\n\n\n"
        "dlt.create_streaming_table('ships')\n"
        "dlt.apply_changes(target='ships', source='loads', keys=['imo'], sequence_by='changed')\n"
    )

    checked = check_project(spark, tmp_path / "loads.py")

    assert [(query.name, query.reason) for query in checked.judged or ()] == [("loads", ""), ("ships", "")]


def test_a_statement_that_spark_cannot_parse_is_a_flow_that_is_not_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = (
        "CREATE LIVE TABLE trips (ride INT) LOCATION '/trips' AS SELECT * FROM parquet.`/raw`;\n"
        "CREATE LIVE TABLE days (day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) AS SELECT at FROM live.trips;\n"
    )

    checked = checked_file(spark, tmp_path / "trips.sql", sql)

    judged = {query.name: query.reason for query in checked.judged or ()}
    assert judged == {"trips": "", "days": "Spark cannot parse its statement"}


READS = "    return spark.readStream.table('port.raw.ships')\n\n\n"


@pytest.mark.parametrize(
    ("ending", "message", "line"),
    [
        ("raise SystemExit('landing is not set')", "it exits with 'landing is not set'", 8),
        ("while True: time.sleep(5)", "its function does not finish", 6),
    ],
)
def test_a_flow_that_ends_the_process_or_never_ends_is_an_error_of_this_flow(
    spark: SparkSession, tmp_path: Path, ending: str, message: str, line: int
) -> None:
    (tmp_path / "ships.py").write_text(
        "import time\n\nfrom pyspark import pipelines as dp\n\n\n"
        f"@dp.table\ndef ships():\n    {ending}\n\n\n@dp.table\ndef loads():\n{READS}"
    )

    checked = check_project(spark, tmp_path / "ships.py")

    (error,) = [finding for finding in checked.findings if str(finding.severity) == "error"]
    assert (error.code, error.message) == ("MS118", f"flow 'ships': {message}")
    assert error.span is not None
    assert error.span.line == line
    assert [(query.name, query.reason) for query in checked.judged or ()] == [("loads", "")]


@pytest.mark.parametrize(
    ("setting", "lines"),
    [
        ("spark.executor.memory: 4g", []),
        ("spark.sql.shuffle.partitions: ${partitions}", []),
        ("spark.sql.session.timeZone: Mars/X", [5]),
    ],
)
def test_a_setting_that_spark_refuses_is_marked_unless_only_the_check_lacks_its_value(
    spark: SparkSession, tmp_path: Path, setting: str, lines: list[int]
) -> None:
    spec = f"{SPEC}configuration:\n  {setting}\n".replace(setting, setting.replace(": ", ": '") + "'")

    findings = checked(spark, tmp_path, "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;", spec)

    assert [(finding.code, finding.span.line) for finding in findings if finding.span] == [
        ("MS118", line) for line in lines
    ]
    assert len(findings) == len(lines)
