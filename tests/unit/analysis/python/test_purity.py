"""Impure code in the source of functions that Spark calls for rows."""

from __future__ import annotations

import pytest

from millstream.analysis.python.purity import find_impure_calls

HEAD = """import random, time, uuid
import datetime as dt
import numpy as np
from datetime import datetime
from functools import lru_cache
import requests
from pyspark.sql.functions import udf
counts = {}
seen = []
total = 0
"""


def list_impurities(body: str) -> list[str]:
    return [impure.what for impure in find_impure_calls(HEAD + body)]


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("time.time()", "reads the clock"),
        ("datetime.now()", "reads the clock"),
        ("dt.date.today()", "reads the clock"),
        ("uuid.uuid4()", "draws a random value"),
        ("random.choice('ab')", "draws a random value"),
        ("np.random.rand()", "draws a random value"),
        ("random.Random().random()", "draws a random value"),
        ("requests.get(x)", "calls another system"),
    ],
)
def test_a_call_that_is_not_made_of_the_row_is_told(expression: str, what: str) -> None:
    assert list_impurities(f"@udf\ndef f(x):\n    return {expression}\n") == [what]


@pytest.mark.parametrize(
    "expression",
    [
        "uuid.uuid5(uuid.NAMESPACE_DNS, x)",
        "random.Random(x).random()",
        "np.random.default_rng(7).random()",
        "datetime.fromisoformat(x)",
        "time.strptime(x)",
        "x.now()",
    ],
)
def test_a_call_that_is_made_of_the_row_is_not_told(expression: str) -> None:
    assert list_impurities(f"@udf\ndef f(x):\n    return {expression}\n") == []


@pytest.mark.parametrize(
    "line",
    ["counts[x] = counts.get(x, 0) + 1", "counts[x] += 1", "seen.append(x)", "global total; total += 1"],
)
def test_a_variable_of_the_module_that_grows_is_told(line: str) -> None:
    assert list_impurities(f"@udf\ndef f(x):\n    {line}\n    return x\n") == ["keeps state between calls"]


@pytest.mark.parametrize(
    "lines",
    [
        "if x not in counts: counts[x] = x.title()",
        "global total; total = total or 5",
        "seen = []; seen.append(x)",
    ],
)
def test_a_table_of_answers_and_a_late_start_are_not_told(lines: str) -> None:
    assert list_impurities(f"@udf\ndef f(x):\n    {lines}\n    return x\n") == []


@pytest.mark.parametrize(
    "use",
    [
        "g = udf(f)",
        "g = udf(f, 'string')",
        "g = frame.mapInPandas(f, 'x string')",
        "g = frame.groupBy('x').applyInPandas(func=f, schema='x string')",
        "spark.udf.register('f', f)",
    ],
)
def test_a_function_that_is_handed_over_is_read(use: str) -> None:
    assert list_impurities(f"def f(x):\n    return random.random()\n{use}\n") == ["draws a random value"]


def test_a_function_that_is_not_called_for_rows_is_not_read() -> None:
    assert list_impurities("def f(x):\n    return random.random()\nf(1)\n") == []


def test_a_lambda_is_read() -> None:
    assert list_impurities("g = udf(lambda x: time.time())\n") == ["reads the clock"]


def test_a_function_that_is_called_by_it_is_read() -> None:
    assert list_impurities("def g():\n    return time.time()\n@udf\ndef f(x):\n    return g()\n") == [
        "reads the clock"
    ]


def test_a_processor_made_in_place_is_read() -> None:
    body = "class P:\n    def handleInputRows(self, key, rows, timers):\n        return time.time()\n"

    assert list_impurities(body + "frame.transformWithState(P(), 'x string')\n") == ["reads the clock"]


def test_a_function_that_is_declared_is_left_to_spark() -> None:
    assert list_impurities("@udf\ndef f(x):\n    return time.time()\nf = f.asNondeterministic()\n") == []


def test_a_text_that_is_no_python_shows_nothing() -> None:
    assert find_impure_calls("def f(:") == []


def test_a_place_is_counted_in_characters() -> None:
    line = '    return "Müller" + str(datetime.now())'

    (impure,) = find_impure_calls(f"{HEAD}@udf\ndef f(x):\n{line}\n")

    assert line[impure.column - 1 : impure.end_column - 1] == "datetime.now()"
