"""A file of variables: `NAME=value` lines, comments after `#`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)\s*(?:#.*)?\Z")


def read_env(path: Path) -> Mapping[str, str]:
    """The variables of a file of `NAME=value` lines; `#` begins a comment, quotes around a value go."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise WrongUse(f"the file of variables {path} is not UTF-8 text", "save it as UTF-8") from None
    except OSError as failed:
        raise WrongUse(
            f"the file of variables {path} cannot be read: {failed.strerror}", "name another"
        ) from failed
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        form = _LINE.match(line)
        if form is None:
            raise WrongUse(
                f"line {number} of {path} is not NAME=value", "write one variable a line, comments after '#'"
            )
        quoted = _QUOTED.match(form[2])
        found[form[1]] = quoted["text"] if quoted else re.sub(r"\s+#.*\Z", "", form[2])
    return found
