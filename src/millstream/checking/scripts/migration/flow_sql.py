"""The query of a declarative pipeline's SQL statement, as the SQL of a view."""

from __future__ import annotations

import re
from collections.abc import Callable

from millstream.checking.scripts.migration.code_slice import NotMovable

# Where the query of a statement begins: after AS, or after the columns of an INSERT.
_QUERY = re.compile(r"\b(?:AS|BY\s+NAME|VALUES)\s*(?=\(?\s*(?:SELECT|WITH|FROM)\b)", re.IGNORECASE)
_INSERT = re.compile(r"\bINSERT\s+INTO\s+\S+\s+(?=SELECT|WITH|FROM)", re.IGNORECASE)
_TABLE = re.compile(
    r"(?P<word>\b(?:FROM|JOIN)\s+)(?P<stream>STREAM\b\s*)?(?P<open>\(\s*)?(?P<name>[\w`]+(?:\.[\w`]+)*)(?P<close>\s*\))?",
    re.IGNORECASE,
)

TableReader = Callable[[str, bool, int], str]


def extract_query(statement: str, line: int, tables: TableReader) -> str:
    """Return the SELECT of a statement, with the names of the project's views in place of its tables.

    `tables` returns the view for a table's name, given whether it is read as a stream, and the line of the read.
    `line` is that of the statement. Raises NotMovable.
    """
    begin = _QUERY.search(statement) or _INSERT.search(statement)
    if begin is None:
        raise NotMovable("its query is not found in the statement")
    query = statement[begin.end() :].strip()
    first = line + statement[: begin.end()].count("\n")

    def rename(match: re.Match[str]) -> str:
        is_function = match["open"] is None and query[match.end() :].lstrip().startswith("(")
        if is_function or (match["open"] is not None and match["stream"] is None):
            return match[0]
        name = match["name"].replace("`", "")
        view = tables(name, match["stream"] is not None, first + query[: match.start()].count("\n"))
        return f"{match['word']}{view or name}" if view or match["stream"] else match[0]

    return _TABLE.sub(rename, query)
