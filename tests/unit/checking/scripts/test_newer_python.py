"""Scripts that are written for a newer Python than the one of the check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.python import parsing
from millstream.checking.syntax_check import find_syntax_error

if TYPE_CHECKING:
    from pathlib import Path


def test_a_script_with_newer_f_strings_runs(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text('d = {"a": 1}\nx = f"{d["a"]} {"\\n".join("bc")}"\n')
    names: dict[str, object] = {}

    exec(parsing.compile_python(script.read_bytes(), str(script)), names)

    assert names["x"] == "1 b\nc"
    assert find_syntax_error(script) is None


def test_a_script_that_no_python_reads_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text('d = {"a": 1}\nx = f"{d["a"]}\n')

    finding = find_syntax_error(script)

    assert finding is not None
    assert finding.code == "MS114"
