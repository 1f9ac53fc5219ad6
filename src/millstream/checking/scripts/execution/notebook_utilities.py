"""What a notebook has and a script does not: `dbutils`, and the code of other notebooks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.checking.scripts.execution.broken_cells import compile_part
from millstream.checking.scripts.execution.source_files import find_notebook, open_parts
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import Doubt

if TYPE_CHECKING:
    from millstream.checking.scripts.execution.skipped_statements import SkippedStatements
    from millstream.checking.scripts.interception.recording import Recording

# How the doubt about a notebook begins.
NOTEBOOK_DOUBT = "notebook "
# A Python name in a command of the shell.
_NAME = re.compile(r"\{(\w+)\}|\$(\w+)")


def run_notebook(recording: Recording, skipped: SkippedStatements, name: str) -> None:
    """Run another notebook in the namespace of the one that names it, as `%run` does."""
    names = sys._getframe(1).f_globals
    outer = str(names.get("__file__", ""))
    path = find_notebook(name, Path(outer).parent)
    if path is None:
        reason = "it is not among these files, so the names that it defines are unknown"
        recording.doubt(Doubt(f"{NOTEBOOK_DOUBT}{name}", reason, call_sites.current_span()))
        return
    # A notebook that it runs in turn is found from its own folder.
    names["__file__"] = str(path)
    try:
        with open_parts(path) as parts:
            for part in parts:
                code = compile_part(part, path, skipped, names, recording)
                if code is not None:
                    exec(code, names)  # noqa: S102 - the purpose of the check
    finally:
        names["__file__"] = outer


def delete_folders(recording: Recording, paths: list[str]) -> None:
    """Note the folders that a cell deletes by a command of the shell, which may have Python names in it."""
    names = sys._getframe(1).f_globals
    for path in paths:
        value = _NAME.sub(lambda name: str(names.get(name[1] or name[2], name[0])), path)
        folder = value.strip("\"'").removesuffix("/*")
        recording.deletions.append((folder, call_sites.current_span()))


class NotebookUtilities:
    """`dbutils`: widgets and the folders that it deletes are known, and everything else is not."""

    def __init__(self, doubt: Doubt, recording: Recording) -> None:
        self._doubt = doubt
        self.widgets = Widgets(doubt)
        self.fs = FileCommands(doubt, recording)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(self._doubt)


class FileCommands:
    """`dbutils.fs`: deletes nothing, and has no known results."""

    def __init__(self, doubt: Doubt, recording: Recording) -> None:
        self._doubt = doubt
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(self._doubt)

    def rm(self, dir: Any = "", *_more: Any, **named: Any) -> Any:  # Databricks' name
        """Record the folder, if a cell itself deletes it: a function may be called only to begin again."""
        frame = call_sites.find_user_frame()
        if frame is not None and frame.f_code.co_name == "<module>":
            folder = str(named.get("path", dir))
            self._recording.deletions.append((folder, call_sites.current_span()))
        return Absent(self._doubt)


class Widgets:
    """Input fields of a notebook. One without a default has no known value."""

    def __init__(self, doubt: Doubt) -> None:
        self._doubt = doubt
        self._defaults: dict[str, str] = {}

    def text(self, name: str, defaultValue: str = "", *_more: Any, **_named: Any) -> None:  # noqa: N803 - Databricks' name
        """Record the default."""
        self._defaults[name] = defaultValue

    dropdown = combobox = multiselect = text

    def get(self, name: str, *_more: Any) -> Any:
        """Return the default."""
        return self._defaults.get(name) or Absent(self._doubt)

    getArgument = get  # noqa: N815 - Databricks' name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(self._doubt)

    def remove(self, name: str) -> None:
        """Forget a field."""
        self._defaults.pop(name, None)

    def removeAll(self) -> None:  # noqa: N802 - Databricks' name
        """Forget all fields."""
        self._defaults.clear()
