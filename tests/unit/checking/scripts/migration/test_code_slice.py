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
    script += "from own.types import StructType, decode\n"
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


RATES = "rates = spark.readStream.format('rate').load()\n"
STORE = (
    "def store(batch, number):\n"
    "    log.info('batch %s: %s', number, max(sizes))\n"
    "    batch.agg(sum('v')).write.save(target)\n"
    "rates.writeStream.foreachBatch(store).start()\n"
)


def test_a_function_is_cut_with_the_names_of_the_module_that_it_uses() -> None:
    script = (
        "import logging\nfrom pyspark.sql import DataFrame\nfrom pyspark.sql.functions import col, max, sum\n"
        "log = logging.getLogger(__name__)\nroot: str = '/lake'\ntarget = root + '/a'\n"
        "sizes = [size for size in (1, 2)]\nbatch = 'of the module'\n"
    )

    store = STORE.replace("batch, number", "batch: DataFrame, number: int")

    imports, definitions = ScriptCode([script + RATES + store], {}).function("store")

    assert imports == [
        "import logging",
        "from pyspark.sql import DataFrame",
        "from pyspark.sql.functions import max, sum",
    ]
    assert definitions[:-1] == [
        "log = logging.getLogger(__name__)",
        "root: str = '/lake'",
        "target = root + '/a'",
        "sizes = [size for size in (1, 2)]",
    ]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("log = sizes = None\n", "line 4: it needs 'target'"),
        (
            "log = sizes = target = ''\nif log:\n    target = 'b'\n",
            "line 2: no single statement gives 'target'",
        ),
        ("log = target = ''\nsizes = []\nsizes.append(1)\n", "line 3: no single statement gives 'sizes'"),
        ("log = sizes = ''\ntarget = sys.argv[1]\nimport sys\n", "line 2: its code depends on arguments"),
        ("log = sizes = ''\ntarget = spark.conf.get('a')\n", "line 2: it needs 'spark'"),
        ("from own.names import log, sizes\nfor target in log:\n    pass\n", "line 2: no single statement"),
    ],
)
def test_a_function_that_needs_a_name_which_cannot_be_moved_is_not_cut(names: str, reason: str) -> None:
    with pytest.raises(NotMovable, match=reason):
        ScriptCode([names + STORE], {}).function("store")


def test_a_query_uses_the_functions_that_the_script_has_under_names_of_python() -> None:
    script = (
        "from pyspark.sql.functions import sum, window\n"
        f"{RATES}filter = rates.where('value > 1')\n"
        "filter.groupBy(window('timestamp', '1 hour')).agg(sum('value')).writeStream.start()\n"
    )

    cut = ScriptCode([script], {2: "rates"}).extract("hours", 4)

    assert cut.imports == ["from pyspark.sql.functions import sum, window"]
    assert "    filter = rates.where('value > 1')" in cut.function.splitlines()


def test_names_that_are_imported_with_a_star_are_known_for_pyspark_only() -> None:
    query = f"{RATES}rates.select(col('value'), other('value')).writeStream.start()\n"

    assert ScriptCode([f"from own.names import *\n{query}"], {2: "rates"}).extract("query", 3).imports
    with pytest.raises(NotMovable, match="line 3: it needs 'other'"):
        ScriptCode([f"from pyspark.sql.functions import *\n{query}"], {2: "rates"}).extract("query", 3)


@pytest.mark.parametrize(
    ("script", "line", "reason"),
    [
        (
            f"{RATES}for filter in ('a', 'b'):\n    rates.where(filter).writeStream.start()\n",
            3,
            "line 2: it needs 'filter', a parameter or a variable of a loop",
        ),
        (
            f"{RATES}def write(df, name):\n    df.writeStream.queryName(name).start()\nwrite(rates, 'a')\n",
            3,
            "line 2: it needs 'df', a parameter or a variable of a loop",
        ),
        (
            f"{RATES}def write(rates):\n    rates.writeStream.start()\nwrite(rates.distinct())\n",
            3,
            "line 2: it needs 'rates', a parameter or a variable of a loop",
        ),
        (
            f"{RATES}df = rates\ndef write(df):\n    df = df.distinct()\n    df.writeStream.start()\nwrite(df)\n",
            5,
            "line 4: it needs 'df', which is not moved with it",
        ),
        (
            f"{RATES}class Job:\n    def run(self):\n        self.rows.writeStream.start()\n",
            4,
            "line 3: it needs 'self'",
        ),
        (f"{RATES}rates.where(limit).writeStream.start()\n", 2, "line 2: it needs 'limit'"),
    ],
)
def test_a_query_that_needs_a_name_which_cannot_be_moved_is_not_cut(
    script: str, line: int, reason: str
) -> None:
    with pytest.raises(NotMovable, match=reason):
        ScriptCode([script], {1: "rates"}).extract("query", line)


def test_a_parameter_of_the_session_and_names_that_a_function_assigns_are_no_obstacle() -> None:
    script = (
        "def main(spark, rows):\n"
        "    rates = spark.readStream.format('rate').load()\n    rows = rates.distinct()\n"
        "    rows.writeStream.start()\n"
    )

    assert ScriptCode([script], {2: "rates"}).extract("query", 4).function.splitlines() == [
        "def query(rates):",
        "    rows = rates.distinct()",
        "    return rows",
    ]
