"""What a script may do that a check cannot follow, and what is said of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts import checkpoint_findings
from millstream.checking.scripts.check import check_script
from millstream.checking.scripts.interception import streaming_query, writers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

HEAD = """from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
"""


def checked(spark: SparkSession, folder: Path, text: str, *args: str) -> CheckResult:
    """A script of this text, checked."""
    job = folder / "job.py"
    job.write_text(text, encoding="utf-8")
    return check_script(spark, job, args)


def list_findings(found: CheckResult) -> list[tuple[str, str, int]]:
    return [
        (finding.code, str(finding.severity), finding.span.line if finding.span else 0)
        for finding in found.findings
    ]


def test_a_script_that_raises_is_judged_up_to_there(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + 'rates.orderBy("value").writeStream.format("console").start()\nraise ValueError("no")\n'

    assert list_findings(checked(spark, tmp_path, text)) == [("MS311", "error", 4), ("MS114", "error", 5)]


def test_a_syntax_error_has_its_line(spark: SparkSession, tmp_path: Path) -> None:
    assert list_findings(checked(spark, tmp_path, "a = 1\nb = (\n")) == [("MS114", "error", 2)]


def test_a_wrong_argument_is_told_in_the_words_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    found = checked(spark, tmp_path, HEAD + 'spark.conf.get("harbour.gauge", defaultValue="north")\n')

    assert [finding.message for finding in found.findings] == [
        "the script ends here: TypeError: RuntimeConfig.get() got an unexpected keyword argument 'defaultValue'"
    ]


def test_several_queries_that_start_too_late_are_named(spark: SparkSession, tmp_path: Path) -> None:
    start = 'rates.writeStream.format("console").queryName("{}").start()'
    text = f"{HEAD}{start.format('a')}.awaitTermination()\n{start.format('b')}\n{start.format('c')}\n"

    (finding,) = checked(spark, tmp_path, text).findings

    assert finding.message == "queries 'b' and 'c' start only after 'a' has ended"


def test_a_row_that_is_missing_in_a_check_is_a_note(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        HEAD
        + 'last = spark.read.schema("n INT").parquet("/nowhere").agg({"n": "max"}).where("false").first()[0]\n'
    )

    findings = list_findings(checked(spark, tmp_path, text))

    assert sorted(item[:2] for item in findings) == [("MS113", "info"), ("MS115", "info")]


def test_a_script_that_starts_nothing_says_so(spark: SparkSession, tmp_path: Path) -> None:
    assert [item[:2] for item in list_findings(checked(spark, tmp_path, HEAD))] == [("MS115", "info")]


def test_a_name_of_a_notebook_is_said(spark: SparkSession, tmp_path: Path) -> None:
    text = 'place = dbutils.widgets.get("place")\nspark.range(3).show()\ndisplay(spark.range(1))\n'

    findings = checked(spark, tmp_path, text).findings

    assert (
        findings[0].why
        == "notebooks and pipelines of a platform define this name, and a check does not have it"
    )
    assert [finding.message for finding in findings] == [
        "name dbutils is not known here: code that uses this cannot be checked",
        "name display is not known here: code that uses this cannot be checked",
        "the script starts no streaming query",
    ]


def test_a_loop_without_an_end_is_taken_for_waiting(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        HEAD + 'import time\nrates.writeStream.format("console").start()\nwhile True:\n    time.sleep(60)\n'
    )

    assert list_findings(checked(spark, tmp_path, text)) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('subprocess.run(["touch", "made"])', "a check does not start other programs"),
        ('os.posix_spawnp("touch", ["touch", "made"], os.environ)', "a check does not start other programs"),
        ("os.kill(os.getppid(), 0)", "a check does not send signals"),
        ('sqlite3.connect("made")', "a check does not open database files"),
        ('socket.create_connection(("127.0.0.1", 9), timeout=1)', "a check does not open connections"),
        ('ctypes.CDLL(None).system(b"touch made")', "a check does not call C libraries"),
    ],
)
def test_what_a_check_refuses_is_told_at_the_scripts_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    imports = "import ctypes, os, socket, sqlite3, subprocess\n"

    text = f"{imports}{HEAD}{asked}\nrates.writeStream.format('console').start().awaitTermination()\n"

    (finding,) = checked(spark, tmp_path, text).findings

    assert (finding.code, str(finding.severity), finding.span.line if finding.span else 0) == (
        "MS114",
        "info",
        5,
    )
    assert said in finding.message
    assert not (tmp_path / "made").exists()


def test_a_script_that_changes_files_is_judged_to_its_end_and_changes_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = HEAD + (
        'import os\nopen("made", "w").close()\nos.chmod("job.py", 0o777)\nos.link("job.py", "linked")\n'
        'spark.createDataFrame([(1,)], ["value"]).count()\n'
        'rates.writeStream.format("console").start().awaitTermination()\n'
    )

    assert list_findings(checked(spark, tmp_path, text)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["job.py"]
    assert (tmp_path / "job.py").stat().st_mode & 0o777 != 0o777


def test_a_comment_allows_a_finding(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + (
        "def show(batch, number):\n    batch.show()\n"
        "q = rates.writeStream.foreachBatch(show).start()  # millstream: allow MS116 — a demonstration\n"
        "q.awaitTermination()\n"
    )

    assert list_findings(checked(spark, tmp_path, text)) == []


def test_a_local_file_gives_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("value,country\n1,de\n")
    text = HEAD + (
        f'users = spark.read.option("header", True).option("inferSchema", True).csv("{tmp_path}/users.csv")\n'
        'named = rates.join(users, "value").select("country")\n'
        'named.writeStream.format("console").start().awaitTermination()\n'
    )

    actual = checked(spark, tmp_path, text)

    assert list_findings(actual) == []
    assert [column.name for column in actual.queries[0].root.columns] == ["country"]


@pytest.mark.parametrize("how", ['spark.table("shop.users")', 'spark.sql("SELECT * FROM shop.users")'])
def test_a_table_of_a_catalog_has_the_columns_that_are_named(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    text = HEAD + f'rates.join({how}, "value").writeStream.format("console").start().awaitTermination()\n'

    (finding,) = checked(spark, tmp_path, text).findings

    assert (finding.code, finding.query) == ("MS113", None)
    assert finding.message.endswith("the check assumes that it has the columns that the script uses")


def test_a_name_that_pyspark_does_not_have_is_told(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + "from pyspark.sql.streaming import GroupState\n"

    finding = checked(spark, tmp_path, text).findings[0]

    assert (finding.code, finding.message.partition(" is not")[0]) == (
        "MS113",
        "'GroupState' of pyspark.sql.streaming",
    )


def test_the_process_is_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    before = (list(sys.path), list(sys.argv), Path.cwd(), set(sys.modules))
    text = HEAD + "import os, sys\nos.chdir('/')\nsys.path.append('/odd')\nsys.argv = []\n"

    checked(spark, tmp_path, text, "--a", "b")

    assert (list(sys.path), list(sys.argv), Path.cwd()) == before[:3]
    assert {name for name in set(sys.modules) - before[3] if "job" in name} == set()


def test_a_broadcast_of_a_table_that_is_not_known_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + (
        "from pyspark.sql.functions import broadcast\n"
        'users = spark.read.jdbc("jdbc:x:y", "users")\n'
        'rates.join(broadcast(users.alias("u")), "value").groupBy("country").count()'
        '.writeStream.format("console").start()\n'
        "for query in spark.streams.active:\n    query.awaitTermination()\n"
    )

    assert list_findings(checked(spark, tmp_path, text)) == [("MS113", "info", 5), ("MS201", "error", 6)]


def test_a_loop_over_the_running_queries_ends(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + (
        'rates.writeStream.format("console").start()\n'
        "while len(spark.streams.active) > 0:\n"
        "    spark.streams.resetTerminated()\n"
        "    spark.streams.awaitAnyTermination()\n"
        'raise ValueError("reached")\n'
    )

    assert list_findings(checked(spark, tmp_path, text)) == [("MS114", "error", 8)]


def test_a_file_that_is_not_on_this_machine_has_a_stand_in(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + (
        'topic = open("/opt/author/settings.txt").read()\n'
        'rates.writeStream.queryName(topic).format("console").start()\n'
    )

    assert list_findings(checked(spark, tmp_path, text)) == [("MS113", "info", 4), ("MS119", "warning", 5)]


def test_a_defect_of_ours_is_not_blamed_on_the_script(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> str:
        raise LookupError("ours")

    broken.__code__ = broken.__code__.replace(co_filename=streaming_query.__file__)
    monkeypatch.setattr(writers, "short_name", broken)

    with pytest.raises(LookupError, match="ours"):
        checked(spark, tmp_path, HEAD + 'rates.writeStream.format("console").start()\n')


def test_a_script_that_leaves_for_want_of_arguments_says_so(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--topic", required=True)\n'
    )

    findings = checked(spark, tmp_path, text + "parser.parse_args()\n").findings
    (finding,) = [entry for entry in findings if entry.code == "MS114"]

    assert str(finding.severity) == "info"
    assert (finding.code, finding.span.line if finding.span else 0) == ("MS114", 4)
    assert "arguments" in finding.fix


def test_rows_that_the_script_makes_itself_are_there(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + (
        'cities = spark.createDataFrame([(1, "Bonn")], ["value", "city"])\n'
        "assert cities.count() == 1\n"
        'cities.write.parquet("/nowhere/cities")\n'
        'rates.join(cities, "value").writeStream.format("console").start().awaitTermination()\n'
    )

    assert list_findings(checked(spark, tmp_path, text)) == []


def test_settings_of_a_context_hold(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "from pyspark import SparkConf, SparkContext\nfrom pyspark.sql import SparkSession\n"
        'conf = SparkConf().setMaster("yarn").set("spark.sql.streaming.checkpointLocation", "hdfs://name/places")\n'
        "spark = SparkSession(SparkContext(conf=conf))\n"
        'rates = spark.readStream.format("rate").load()\n'
        'rates.writeStream.queryName("rates").format("parquet").start("/lake/rates").awaitTermination()\n'
    )

    assert list_findings(checked(spark, tmp_path, text)) == []


def test_an_error_that_the_script_does_not_catch_is_not_called_caught(
    spark: SparkSession, tmp_path: Path
) -> None:
    (finding,) = checked(spark, tmp_path, HEAD + 'rates.select("nothing")\n').findings

    assert finding.message.startswith("the script ends here: A column")


@pytest.mark.parametrize(("started", "ends"), [("", "starts no query"), (".start()", "ends")])
def test_a_script_that_exits_after_an_error_has_the_error_on_its_line(
    spark: SparkSession, tmp_path: Path, started: str, ends: str
) -> None:
    text = HEAD + (
        "import sys\n"
        f'rates.writeStream.format("console").option("checkpointLocation", "/data/rates"){started}\n'
        "try:\n"
        '    rates.select("nothing")\n'
        "except Exception as error:\n"
        "    print(error)\n"
        "    sys.exit(1)\n"
    )

    found = next(one for one in checked(spark, tmp_path, text).findings if one.code == "MS114")

    assert found.message.startswith(f"the script catches this error, and {ends}: A column")
    assert found.span is not None
    assert found.span.line == 7


@pytest.mark.parametrize(
    ("columns", "end"),
    [
        ('"raw", "d.id"', "NULLs go into the sink, with the message in 'raw'"),
        ('"d.*", "value"', "NULLs go into the sink, with the message in 'value'"),
        ('"d.*"', "the message is lost, and NULLs go into the sink"),
        ('"d.raw"', "the message is lost, and NULLs go into the sink"),
    ],
)
def test_an_invalid_message_is_lost_where_no_column_keeps_it(
    spark: SparkSession, tmp_path: Path, columns: str, end: str
) -> None:
    text = f"""from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
spark = SparkSession.builder.getOrCreate()
topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:1").option("subscribe", "t").load()
text = topic.withColumn("raw", col("value").cast("string"))
decoded = text.withColumn("d", from_json("raw", "id INT, raw STRING")).select({columns})
decoded.writeStream.option("checkpointLocation", "s3a://b/cp").start("s3a://b/out").awaitTermination()
"""

    (finding,) = checked(spark, tmp_path, text).findings

    assert (finding.code, finding.why) == (
        "MS553",
        f"Spark gives no error for such a message and does not count it: {end}",
    )


def test_the_mode_of_a_long_avro_schema_is_read(spark: SparkSession, tmp_path: Path) -> None:
    fields = [{"name": f"measurement_{number}", "type": "int"} for number in range(20)]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    text = f"""from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
spark = SparkSession.builder.getOrCreate()
topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:1").option("subscribe", "t").load()
decoded = topic.select(from_avro("value", {schema!r}, {{"mode": "PERMISSIVE"}}))
decoded.writeStream.option("checkpointLocation", "s3a://b/cp").start("s3a://b/out").awaitTermination()
"""

    (finding,) = checked(spark, tmp_path, text).findings

    assert (finding.code, finding.message.rpartition(", ")[2]) == (
        "MS553",
        "and an invalid message becomes a row of NULLs",
    )


@pytest.mark.parametrize("root", [".", "../.."])
def test_a_checkpoint_in_the_project_of_the_script_is_where_the_script_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.setattr(checkpoint_findings, "_EMPTIED", {str(tmp_path.parent): "it is emptied"})
    folder = tmp_path / "tides" / "jobs"
    folder.mkdir(parents=True)
    (folder / root / "requirements.txt").touch()
    text = HEAD + (
        f"from pathlib import Path\ncheckpoint = str((Path(__file__).parent / '{root}' / 'checkpoint').resolve())\n"
        'rates.writeStream.option("checkpointLocation", checkpoint).start("s3a://b/out").awaitTermination()\n'
    )

    assert list_findings(checked(spark, folder, text)) == []


def test_a_model_is_not_known_by_its_path(spark: SparkSession, tmp_path: Path) -> None:
    text = HEAD + (
        'from pyspark.ml import PipelineModel\nmodel = PipelineModel.load("models/fares")\n'
        'model.transform(rates).writeStream.format("console").start().awaitTermination()\n'
    )

    (finding,) = checked(spark, tmp_path, text).findings

    text = (
        "the model models/fares is not known here: the check assumes that it has the columns that the script "
        "uses"
    )
    assert finding.message == text
