"""Expectations of Databricks about rows: those that drop rows, or fail, keep rows of NULLs from a dataset."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions

from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.sql_text import find_closing_bracket
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

EXPECTATIONS = "_millstream_expectations"
"""The attribute of a function with its expectations: a label, a condition, and the name of the decorator."""
DECORATORS = tuple(
    f"expect{many}{action}" for many in ("", "_all") for action in ("", "_or_drop", "_or_fail")
)
EXPECTATION = re.compile(r"\bCONSTRAINT\s+(`[^`]*`|\w+)\s+EXPECT\s*\(", re.IGNORECASE)
"""What begins an expectation in SQL, up to its condition. The first group is its label."""
VIOLATION = re.compile(r"\s*ON\s+VIOLATION\s+(FAIL\s+UPDATE|DROP\s+ROW)\b", re.IGNORECASE)
"""What makes an expectation in SQL drop rows, or fail."""


@dataclass(frozen=True)
class DeclaredExpectation:
    """A condition that the rows of a dataset should meet."""

    label: str
    condition: str
    otherwise: Otherwise

    @property
    def is_refusing(self) -> bool:
        """Whether a row that breaks it is dropped, or ends the pipeline."""
        return self.otherwise is not Otherwise.WARN


def list_expectations(function: Any) -> list[DeclaredExpectation]:
    """Return the expectations that decorators gave a function."""
    return [
        DeclaredExpectation(label, condition, _find_otherwise(decorator))
        for label, condition, decorator in getattr(function, EXPECTATIONS, ())
    ]


def list_expectation_settings(settings: Mapping[str, Any]) -> list[DeclaredExpectation]:
    """Return the expectations among the settings of `create_streaming_table`."""
    return [
        DeclaredExpectation(str(label), str(condition), _find_otherwise(name))
        for name, conditions in settings.items()
        if name in DECORATORS and type(conditions) is dict
        for label, condition in conditions.items()
    ]


def list_expectation_clauses(statement: str) -> Iterator[DeclaredExpectation]:
    """Yield the expectations of a statement."""
    for expectation in EXPECTATION.finditer(statement):
        stop = find_closing_bracket(statement, expectation.end())
        violation = VIOLATION.match(statement, stop)
        action = violation[1].split()[0].lower() if violation else "warn"
        condition = statement[expectation.end() : stop - 1]
        yield DeclaredExpectation(expectation[1].strip("`"), condition.strip(), Otherwise(action))


def _find_otherwise(decorator: str) -> Otherwise:
    """Return what a decorator, or the setting of that name, does with a row that breaks an expectation."""
    return Otherwise({"drop": "drop", "fail": "fail"}.get(decorator.rpartition("_")[2], "warn"))


def apply_expectations(frame: DataFrame, expectations: Iterable[DeclaredExpectation]) -> DataFrame:
    """Return the rows of a frame that a run of the pipeline writes. FAIL raises an error."""
    for expectation in expectations:
        condition = functions.expr(expectation.condition)
        match expectation.otherwise:
            case Otherwise.DROP:
                frame = frame.where(condition)
            case Otherwise.FAIL:
                message = functions.lit(f"a row breaks the expectation '{expectation.label}'")
                is_met = functions.when(condition, functions.lit(True))  # noqa: FBT003 - a literal
                frame = frame.where(is_met.otherwise(functions.raise_error(message)))
    return frame


def keep_expected(
    frame: DataFrame | Unknown, expectations: Iterable[DeclaredExpectation]
) -> DataFrame | Unknown:
    """Return the rows of a frame that no expectation refuses. A condition that Spark cannot analyse is left out."""
    for expectation in expectations:
        if not expectation.is_refusing:
            continue
        try:
            expected = frame.where(expectation.condition)
        except PySparkException:
            continue
        if not isinstance(expected, Unknown) or expected.probe is not None:
            frame = expected
    return frame
