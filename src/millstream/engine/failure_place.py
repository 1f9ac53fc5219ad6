"""Find where the spec or the user's code made a batch fail, from Spark's text of the error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.own_code import find_own_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.pipeline.model import Pipeline

    LocateSql = Callable[[str, int, int], str]

# Spark's query context: the place in a statement, then the line itself.
_CONTEXT = re.compile(r"== SQL[^\n]*\(line (\d+), position (\d+)\) ==\n([^\n]*)")
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')


def locate_failure(text: str, pipeline: Pipeline, query: str, locate_sql: LocateSql | None = None) -> str:
    """Return the place of a failure, such as `pipeline.yml:12` or `functions.py:7`; empty if Spark names none.

    `locate_sql` returns the file and line of some characters of a view's SQL.
    """
    return _locate_in_python(text, pipeline) or _locate_in_sql(text, pipeline, query, locate_sql)


def _locate_in_python(text: str, pipeline: Pipeline) -> str:
    """Return the innermost line of the project's own files in a traceback."""
    for file, line in reversed(_FRAME.findall(text)):
        path = find_own_path(Path(file), pipeline.folder)
        if path is not None:
            return f"{path}:{line}"
    return ""


def _locate_in_sql(text: str, pipeline: Pipeline, query: str, locate_sql: LocateSql | None) -> str:
    """Return the place of an expression in the SQL of the only view that can contain it."""
    for number, position, fragment in _CONTEXT.findall(text):
        line, column = int(number) - 1, int(position) - 1
        places = []
        for view in PipelineGraph.of(pipeline).views(query):
            lines = (pipeline.views[view].sql or "").splitlines()
            # Spark shortens a long line at both ends.
            if line < len(lines) and fragment.strip(" .") in lines[line]:
                places.append((view, sum(len(before) + 1 for before in lines[:line]) + column))
        if len(places) == 1:
            ((view, start),) = places
            place = locate_sql(view, start, start + 1) if locate_sql is not None else ""
            return f"view '{view}', {place}" if place else f"view '{view}', line {number} of its SQL"
    return ""
