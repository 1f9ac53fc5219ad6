"""What an error of a script lacks, and where the script asks for it."""

from __future__ import annotations

import sysconfig
from functools import partial
from pathlib import Path

import pytest

from millstream.checking.scripts.execution.retries import Retries
from millstream.checking.scripts.interception.recording import Recording

LIBRARY = "try:\n    import first_choice\nexcept ImportError:\n    import second_choice\n"


def test_a_module_that_a_library_would_prefer_is_placed_where_the_script_imports_the_library(
    tmp_path: Path,
) -> None:
    script = tmp_path / "job.py"
    script.write_text("import sys\n\nload()\n")
    library = compile(LIBRARY, str(Path(sysconfig.get_path("purelib"), "library.py")), "exec")
    retries = Retries()

    with pytest.raises(ImportError) as raised:
        exec(compile(script.read_text(), str(script), "exec"), {"load": partial(exec, library, {})})

    assert retries.provide(raised.value, script, Recording())
    span = retries.absent["module first_choice"].span
    assert span is not None
    assert (Path(span.file).name, span.line) == ("job.py", 3)
