"""Notebooks and exports as Python: every line stays where it was."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.execution.source_files import open_parts, without_magic
from millstream.checking.scripts.interception import call_sites

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%pip install x\na = 1", "pass  # %pip install x\na = 1"),
        ("%pip install x \\\n    y\na = 1", "pass  # %pip install x \\\n#     y\na = 1"),
        ("files = !ls /tmp\nb = 2", "files = None\nb = 2"),
        ("files = !ls \\\n  /tmp\nb = 2", "files = None\n#   /tmp\nb = 2"),
        (
            "%%time\nrows = %sql \\\n  SELECT \\\n  1\nb = 2",
            '\nrows = spark.sql(""" \n  SELECT \n  1""")\nb = 2',
        ),
        ("rows = %sql SELECT 1", 'rows = spark.sql(""" SELECT 1""")'),
        ("a = 1 + \\\n    2", "a = 1 + \\\n    2"),
        ("%time a = 1", "a = 1"),
        ("if x:\n  %prun a = (7 \\\n    % c)", "if x:\n  a = (7 \\\n    % c)"),
        ("%time", "pass  # %time"),
        ("%prun -l 5 a()", "pass  # %prun -l 5 a()"),
        ("%time %run ./other", "__millstream_run__('./other')"),
        ('%run "./My Folder/setup" $day="1"', "__millstream_run__('./My Folder/setup')"),
        ("%run './it\"s'", """__millstream_run__('./it"s')"""),
        ("%run ./other $day='1'", "__millstream_run__('./other')"),
        ("%run ./other", "__millstream_run__('./other')"),
        ("%%sql\nSELECT 1\nFROM t", 'spark.sql("""\nSELECT 1\nFROM t""")'),
        ("%sql SELECT 1", 'spark.sql("""SELECT 1""")'),
        ("%%bash\nrm -rf x", "# %%bash\n# rm -rf x"),
        ("frame.show?\nc = 3", "pass  # frame.show?\nc = 3"),
        ("!rm -rf {x}/* y", "__millstream_delete__(['{x}/*', 'y'])"),
        ("!rm -f a b-r/c", "pass  # !rm -f a b-r/c"),
        ("rest = 7 % 3\nif x:\n    !echo", "rest = 7 % 3\nif x:\n    pass  # !echo"),
    ],
)
def test_magic_becomes_python_on_the_same_lines(cell: str, code: str) -> None:
    assert without_magic(cell) == code
    assert ast.parse(without_magic(cell)) is not None


def test_a_databricks_export_keeps_its_lines(tmp_path: Path) -> None:
    export = tmp_path / "job.py"
    export.write_text(
        "# Databricks notebook source\n# MAGIC %sql\n# MAGIC SELECT 1 AS n\n# COMMAND ----------\n"
        "# MAGIC %run ./more\n# COMMAND ----------\nx = 1\n"
    )

    with open_parts(export) as parts:
        lines = [line for part in parts for line in part.text.splitlines() if line]

    assert lines[1:3] == ['spark.sql("""', 'SELECT 1 AS n""")']
    assert (lines[4], lines[6]) == ("__millstream_run__('./more')", "x = 1")


def test_a_notebook_that_is_none_is_a_syntax_error(tmp_path: Path) -> None:
    (tmp_path / "job.ipynb").write_text(json.dumps({"nothing": []}))

    with pytest.raises(SyntaxError, match="no Jupyter notebook"), open_parts(tmp_path / "job.ipynb"):
        pass


def test_a_notebook_of_an_old_format_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    (tmp_path / "job.ipynb").write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": []}]}))

    with pytest.raises(SyntaxError, match="jupyter nbconvert"), open_parts(tmp_path / "job.ipynb"):
        pass


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%sql a; b", 'spark.sql("""a"""); spark.sql(""" b""")'),
        ("%sql\nSELECT 'a;b' -- c;d\nFROM t;\n\nSELECT 2;", None),
        ("%sql\n-- notes; only", "# \n# -- notes; only"),
    ],
)
def test_each_statement_of_a_cell_of_sql_is_a_call(cell: str, code: str | None) -> None:
    python = without_magic(cell)

    assert python.count("\n") == cell.count("\n")
    if code is not None:
        assert python == code
        return
    first, second = ast.parse(python).body
    assert (first.lineno, second.end_lineno) == (1, 5)


def test_an_export_has_the_text_of_its_magic(tmp_path: Path) -> None:
    export = tmp_path / "job.py"
    export.write_text(
        "# Databricks notebook source\n# MAGIC %sql\n# MAGIC SELECT 1\n# COMMAND ----------\nx = 1\n"
    )

    with open_parts(export) as (sql, python):
        assert 'spark.sql("""' in sql.text
        assert python.text.splitlines()[4] == "x = 1"
        assert call_sites.read_python(str(export)) != export.read_bytes()


def test_magic_that_is_not_in_a_comment_of_an_export_is_read_as_magic(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(
        "# Databricks notebook source\n%pip install x\na = 1\n# COMMAND ----------\nb = (7\n% a)\n"
        "# COMMAND ----------\nif b\n  !"
    )

    with open_parts(file) as parts:
        texts = [part.text for part in parts]

    assert texts == [
        "# Databricks notebook source\npass  # %pip install x\na = 1",
        "\n\n\n# COMMAND ----------\nb = (7\n% a)",
        "\n\n\n\n\n\n# COMMAND ----------\nif b\n  !",
    ]


FORMATTED = (
    'text = (\n    "%s rows"\n    % (7)\n)\nif (\n    text\n    != 3\n):\n    b = """\n% 10\nnotes?\n"""'
)


@pytest.mark.parametrize("before", ["", "%pip install x\n"])
@pytest.mark.parametrize(
    "code",
    [FORMATTED, "# it's (\na = f'(' + \"#\\\"(\"", "a = 7 \\\n  % 3", "a = 'b\\\n% c'", '"""a"""'],
    ids=range(5),
)
def test_a_line_within_a_statement_is_no_magic(tmp_path: Path, before: str, code: str) -> None:
    cell = {"cell_type": "code", "source": f"{before}{code}\n%time\n"}
    (tmp_path / "job.ipynb").write_text(json.dumps({"cells": [cell]}))

    with open_parts(tmp_path / "job.ipynb") as (part,):
        assert part.text == f"{before and 'pass  # ' + before}{code}\npass  # %time\n"


def test_a_script_has_the_encoding_that_it_declares(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_bytes("# -*- coding: latin-1 -*-\nname = 'r\u00e9sum\u00e9'\n".encode("latin-1"))

    with open_parts(file) as (part,):
        assert ast.parse(part.text).body[0].value.value == "r\u00e9sum\u00e9"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job.py", "# Databricks notebook source\na = 1\n# COMMAND ----------\nb = 2\n"),
        (
            "job.ipynb",
            json.dumps({"cells": [{"cell_type": "code", "source": code} for code in ("a = 1", "b = 2")]}),
        ),
    ],
)
def test_a_notebook_may_begin_with_a_byte_order_mark(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")

    with open_parts(tmp_path / name) as parts:
        assert len(parts) == 2
