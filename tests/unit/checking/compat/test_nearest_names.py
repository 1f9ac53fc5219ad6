"""The name that an error proposes for a misspelt one."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from millstream.checking.compat.error_parser import find_fix, split_message

COLUMN = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `celcius` cannot be "
    "resolved. Did you mean one of the following? [`window`, `sensor`, `celsius`, `read_at`]. SQLSTATE: 42703"
)
ROUTINE = (
    "[UNRESOLVED_ROUTINE] Cannot resolve routine `{name}` on search path [`system`.`builtin`, `system`.`session`]. "
    "Verify the spelling of `{name}`. SQLSTATE: 42883"
)


def test_the_column_with_the_fewest_other_letters_is_proposed() -> None:
    assert find_fix(AnalysisException(COLUMN)) == "write `celsius`"


def test_columns_that_are_all_different_are_listed() -> None:
    fix = find_fix(AnalysisException(COLUMN.replace("`celcius`", "`temperature`")))

    assert fix == "write one of `window`, `sensor`, `celsius`, `read_at`"


@pytest.mark.parametrize(("name", "fix"), [("ROUN", "write ROUND"), ("windw", "write window"), ("xyzzy", "")])
def test_the_nearest_function_of_spark_is_proposed(name: str, fix: str) -> None:
    error = AnalysisException(ROUTINE.format(name=name))

    assert find_fix(error) == fix
    assert split_message(error)[0] == f"there is no function '{name}'"


def test_a_function_that_a_star_import_lost_is_imported_by_its_name() -> None:
    error = NameError("name 'countDistinct' is not defined", name="countDistinct")

    assert find_fix(error).startswith("import it by its name")
    assert not find_fix(NameError("name 'count_distinct' is not defined", name="count_distinct"))
