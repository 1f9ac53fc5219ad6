"""Put functions of Spark in place of the JSON paths that only the SQL of Databricks has: `body:city`."""

from __future__ import annotations

import re

# Text in quotes, a comment, or a column with a path.
_PARTS = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*"
    r"|(?<![\w:.])(?P<column>[A-Za-z_][\w.]*):(?P<path>[A-Za-z_][\w.]*(?:\[\d+\][\w.]*)*)(?![\w:(])"
)


def replace_json_paths(text: str) -> str:
    """Return an SQL text without JSON paths."""

    def replace(part: re.Match[str]) -> str:
        if part["column"] is None:
            return part[0]
        return f"get_json_object({part['column']}, '$.{part['path']}')"

    return _PARTS.sub(replace, text)
