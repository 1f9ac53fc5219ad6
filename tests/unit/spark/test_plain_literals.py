"""A plain value becomes a column, and an argument of a call, without pandas."""

from __future__ import annotations

import subprocess
import sys

# Without a JVM neither comes to its end, but PySpark looks for NumPy's values first.
SCRIPT = """
import contextlib, sys
from pyspark.sql import functions
from pyspark.sql.types import NumpyScalarConverter
from millstream.spark import internals

internals.recognise_numpy_without_loading_it()
for make in (lambda: functions.lit("a"), lambda: functions.lit(None), lambda: functions.concat(functions.lit(1))):
    with contextlib.suppress(AssertionError):
        make()
NumpyScalarConverter().can_convert(1)
print("pandas" in sys.modules, "pyspark.testing.utils" in sys.modules)
"""


def test_a_literal_does_not_import_pandas() -> None:
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)

    assert process.stdout.split() == ["False", "False"]
