"""Read a file of variables: `NAME=value` lines, comments after `#`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)\s*(?:#.*)?\Z")


def read_env(path: Path) -> Mapping[str, str]:
    """Read the variables of a file of `NAME=value` lines; `#` begins a comment, quotes around a value are removed."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"the variables file {path} is not UTF-8 text", "save it as UTF-8") from None
    except OSError as os_error:
        raise InvalidInput(
            f"the variables file {path} cannot be read: {os_error.strerror}", "name another file"
        ) from os_error
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise InvalidInput(
                f"line {number} of {path} is not NAME=value",
                "write one variable per line, comments after '#'",
            )
        quoted = _QUOTED.match(match[2])
        variables[match[1]] = quoted["text"] if quoted else re.sub(r"\s+#.*\Z", "", match[2])
    return variables
