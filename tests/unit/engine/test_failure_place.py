from __future__ import annotations

from pathlib import Path

import pytest

from millstream.engine.failure_place import locate_failure
from millstream.pipeline import own_code
from millstream.pipeline.load.loader import load_text

SPEC = """name: shop
sources: {ticks: {rate: 1}}
views:
  odd: "SELECT 1 / value AS v FROM ticks"
  same: "SELECT 1 / value AS v FROM ticks"
  other: "SELECT 1 / value AS v FROM ticks"
queries:
  odd: {to: {console: {}}}
"""
CONTEXT = (
    "[DIVIDE_BY_ZERO] Division by zero\n== SQL (line 1, position 8) ==\nSELECT 1 / value AS v FROM ticks\n"
)


def locate(text: str, spec: str = SPEC) -> str:
    loaded = load_text("pipeline.yml", spec, Path("/project"), {})
    assert loaded.pipeline is not None

    def locate_sql(view: str, start: int, stop: int) -> str:
        span = loaded.places.sql(view, start, stop)
        return f"{span.file}:{span.line}:{span.column}"

    return locate_failure(text, loaded.pipeline, "odd", locate_sql)


def test_sql_is_found_among_the_views_of_the_query_alone() -> None:
    assert locate(CONTEXT) == "view 'odd', pipeline.yml:4:16"


def test_sql_that_two_views_of_the_query_have_is_not_guessed() -> None:
    spec = SPEC.replace('odd: "SELECT 1 / value AS v FROM ticks"', 'odd: "SELECT 1 / value AS v FROM same"')
    shortened = CONTEXT.replace("AS v FROM ticks", "AS v ...")

    assert locate(shortened) == "view 'odd', pipeline.yml:4:16"
    assert locate(shortened, spec) == ""


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("/project/functions.py", "functions.py:7"),
        ("/project/lib/more.py", "lib/more.py:7"),
        ("/project/.venv/lib/python3.11/site-packages/x.py", ""),
        ("/project/.pixi/lib/python3.11/socket.py", ""),
        ("/elsewhere/functions.py", ""),
    ],
)
def test_the_innermost_line_of_the_project_is_named(
    file: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_code, "STANDARD_LIBRARY", Path("/project/.pixi/lib/python3.11"))
    text = f'Traceback:\n  File "/spark/worker.py", line 2, in main\n  File "{file}", line 7, in f\nValueError: no'

    assert locate(text) == place


def test_an_error_without_a_place_has_none() -> None:
    assert locate("java.lang.IllegalStateException: no") == ""
