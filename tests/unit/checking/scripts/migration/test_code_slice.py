"""The code of a query, cut out of a script as a function of its sources."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.migration.code_slice import NotMovable, ScriptCode

SCRIPT = """import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

DELAY = "10 minutes"
unused = F.lit(1)

def cleaned(frame):
    return frame.where(F.col("user").isNotNull())

spark = SparkSession.builder.getOrCreate()
clicks = spark.readStream.schema("user STRING, at TIMESTAMP").json("in")
countries = spark.read.schema("user STRING, country STRING").csv("c").dropDuplicates()
late = cleaned(clicks).withWatermark("at", DELAY)
counts = late.join(countries, "user").groupBy(F.window("at", "1 hour"), "country").count()
writer = counts.writeStream.outputMode("append").format("parquet").option("path", "out")
query = writer.option("checkpointLocation", "cp").start()
other = clicks.where(f"user != '{sys.argv[1]}'").writeStream.format("console").start()
query.awaitTermination()
"""
SOURCES = {12: "clicks", 13: "countries"}


def test_a_query_is_cut_with_what_it_needs_and_nothing_else() -> None:
    cut = ScriptCode([SCRIPT], SOURCES).extract("counts", 17)

    assert cut.function.splitlines() == [
        "def counts(countries, clicks):",
        "    countries = countries.dropDuplicates()",
        "    late = cleaned(clicks).withWatermark('at', DELAY)",
        "    counts = late.join(countries, 'user').groupBy(F.window('at', '1 hour'), 'country').count()",
        "    return counts",
    ]
    assert cut.imports == ["from pyspark.sql import functions as F"]
    assert [definition.split("\n")[0] for definition in cut.definitions] == [
        "DELAY = '10 minutes'",
        "def cleaned(frame):",
    ]
    assert compile("\n".join([*cut.imports, *cut.definitions, cut.function]), "transforms.py", "exec")


def test_code_that_depends_on_arguments_is_not_cut() -> None:
    with pytest.raises(NotMovable, match="line 18: its code depends on arguments"):
        ScriptCode([SCRIPT], SOURCES).extract("other", 18)


def test_sql_over_temporary_views_is_cut_with_the_views() -> None:
    script = (
        "rates = spark.readStream.format('rate').load()\n"
        "rates.createOrReplaceTempView('rates')\nrates.createOrReplaceTempView('others')\n"
        "big = spark.sql('SELECT * FROM rates WHERE value > 3')\n"
        "big.writeStream.format('console').start()\n"
    )

    assert ScriptCode([script], {1: "rates"}).extract("big", 5).function.splitlines() == [
        "def big(rates):",
        "    spark = rates.sparkSession",
        "    rates.createOrReplaceTempView('rates')",
        "    big = spark.sql('SELECT * FROM rates WHERE value > 3')",
        "    return big",
    ]


@pytest.mark.parametrize(
    ("first", "change"),
    [
        ("fields = StructType()", "fields.add('id', 'int').add('page', 'string')"),
        ("fields = []", "fields.append('id')"),
        ("fields = []", "for name in ('id', 'page'):\n    fields.append(name)"),
        ("fields = {}", "fields['id'] = 'int'"),
    ],
)
def test_a_statement_that_changes_what_a_query_needs_is_cut_with_it(first: str, change: str) -> None:
    script = f"rates = spark.readStream.format('rate').load()\n{first}\nrates.printSchema()\n{change}\n"
    start = "decoded = rates.select(decode(fields))\ndecoded.writeStream.format('console').start()\n"
    line = script.count("\n") + 2

    cut = ScriptCode([script + start], {1: "rates"}).extract("decoded", line)

    body = "\n".join(text.removeprefix("    ") for text in cut.function.splitlines()[1:])
    assert body == f"{first}\n{change}\ndecoded = rates.select(decode(fields))\nreturn decoded"


def test_a_query_that_needs_a_changed_constant_is_not_cut() -> None:
    script = (
        "FIELDS = ['id']\nFIELDS.append('page')\nrates = spark.readStream.format('rate').load()\n"
        "rates.select(*FIELDS).writeStream.format('console').start()\n"
    )

    with pytest.raises(NotMovable, match="line 2: it changes the constant 'FIELDS'"):
        ScriptCode([script], {3: "rates"}).extract("rates", 4)


def test_code_in_a_function_is_cut_with_that_of_the_module() -> None:
    script = (
        "LIMIT = 3\n\ndef main():\n    rates = spark.readStream.format('rate').load()\n"
        "    query = rates.where(f'value > {LIMIT}').writeStream.format('console').start()\n"
    )

    cut = ScriptCode([script], {4: "rates"}).extract("query", 5)

    assert cut.definitions == ["LIMIT = 3"]
    assert cut.function == "def query(rates):\n    return rates.where(f'value > {LIMIT}')"


def test_a_source_that_is_read_out_of_sight_is_not_cut() -> None:
    script = "raw = spark.readStream.table(name)\nraw.writeStream.format('console').start()\n"

    with pytest.raises(NotMovable, match="reads a source"):
        ScriptCode([script], {}).extract("raw", 2)


def test_a_cell_that_cannot_be_read_is_left_out() -> None:
    cells = [
        'rates = spark.readStream.format("rate").load()',
        "\nif rates\n    pass",
        "\n\n\nrates.where(rates.value > 3).writeStream.start()",
    ]

    assert ScriptCode(cells, {1: "rates"}).extract("query", 4).function.splitlines() == [
        "def query(rates):",
        "    return rates.where(rates.value > 3)",
    ]


def test_a_script_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        ScriptCode(["if rates\n    pass"], {})
