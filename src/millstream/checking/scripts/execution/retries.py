"""What a run of a script lacked, and how the next run gets a placeholder for it."""

from __future__ import annotations

import ast
import builtins
import configparser
import contextlib
import linecache
import os
import re
import sys
import traceback
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import SQLContext

from millstream.checking.scripts.execution.error_causes import error_chain, find_cause
from millstream.checking.scripts.execution.module_search import (
    AbsentModuleFinder,
    find_package_root,
    forget_absent_modules,
    list_caught_imports,
    list_project_folders,
)
from millstream.checking.scripts.execution.notebook_utilities import (
    NOTEBOOK_DOUBT,
    NotebookUtilities,
    delete_folders,
    run_notebook,
)
from millstream.checking.scripts.execution.skipped_statements import Role, SkippedStatements
from millstream.checking.scripts.execution.source_files import DELETE, RUN, read_cells
from millstream.checking.scripts.interception import absent, call_sites
from millstream.checking.scripts.interception.absent import Absent, expected
from millstream.checking.scripts.interception.audit_hook import RefusedCall
from millstream.checking.scripts.interception.call_sites import error_span, is_user_file
from millstream.checking.scripts.interception.columns.assumed_columns import AssumedColumns, missing_function
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import Doubt, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.execution.spark_version import SparkVersion
    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import ScriptExecution
    from millstream.diagnostics.finding import Span

# Names that a notebook defines for its cells, and a script does not have.
NOTEBOOK = ("dbutils", "display", "displayHTML", "notebookutils", "mssparkutils")
# Those of them by which it reaches files and widgets.
_UTILITIES = tuple(f"name {name}" for name in ("dbutils", "notebookutils", "mssparkutils"))
# How the names begin that an event stream of Fabric gives to a notebook that it starts.
_GIVEN_BY_FABRIC = "__in_eventstream_"

# What Python says of `from .module import name` in a script.
_RELATIVE = "attempted relative import with no known parent package"

_UNSET_NAME = re.compile(r"'(\w+)'")

# What Python says of a function that its decorator should have called.
_LACKS_ARGUMENTS = re.compile(r"(.+)\(\) missing \d+ required (?:positional|keyword-only) argument")

_STAR_IMPORT = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+\*", re.MULTILINE)

# How the doubt about an environment variable begins.
_VARIABLE = "environment variable "

_SETTINGS_FILE = re.compile(r"[\w./-]+\.(?:ini|cfg|conf|config|properties)\b")

_CURRENT_FOLDER = re.compile(r"\b(?:cwd|getcwd)\(\)")

# Names that PySpark's shell defines, on which notebooks are run too.
_OF_SHELL = ("spark", "sc", "sqlContext")
# Names for which the check has a value.
_PROVIDED = tuple(f"name {name}" for name in _OF_SHELL)

NOTHING_GIVEN: Mapping[str, str] = MappingProxyType({})


@dataclass
class Retries:
    """What earlier runs of a script lacked, and the next run is given."""

    known_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that the user gives, by the name of the table, path or topic."""
    absent: dict[str, Doubt] = field(default_factory=dict)
    """Missing modules and names, each of which has a placeholder."""
    skipped: SkippedStatements = field(default_factory=SkippedStatements)
    assumed: AssumedColumns = field(default_factory=AssumedColumns)
    """Columns of unknown sources, by the names that the script uses."""
    roots: list[str] = field(default_factory=list)
    """Folders above the script that hold packages of its project."""
    searched_roots: list[str] = field(default_factory=list)
    """Those of `roots` in which the current run finds modules."""
    execution: ScriptExecution | None = None
    """Runs the queries of the script, in a proof."""
    package: str = ""
    """The package whose module the script is, if it imports others relative to itself: `python -m` runs it."""
    with_arguments: set[str] = field(default_factory=set)
    """Functions whose decorator, of a module that is not installed, gives them arguments."""
    says_yes: bool = False
    """True if stand-ins are true in the next run, because no query was started while they were false."""
    has_servers: bool = False
    """True if the script's own connections seem to succeed in the next run, because it ended when they did not."""
    folder: Path | None = None
    """The folder in which the script runs, if files that it names relative to it are not in the current one."""
    spark_version: SparkVersion | None = None
    """The version of Spark for which the script is written, if it is known."""
    has_ambiguous_window: bool = False
    """True if Spark refused a window as ambiguous, which releases before 4.2 do not: the next run allows it."""
    is_traced: bool = False
    """True if the next run looks for an error that the script catches, because the last one started no query."""

    def recording(self) -> Recording:
        """Return an empty recording with the doubts that are known before the run."""
        doubts = [doubt for doubt in self.absent.values() if doubt.what not in _PROVIDED]
        recording = Recording(doubts=doubts, known_columns=self.known_columns, execution=self.execution)
        recording.has_servers, recording.spark_version = self.has_servers, self.spark_version
        self.assumed.has_grown = False
        recording.assumed = self.assumed if self.execution is None else None
        for doubt in self.skipped.doubts.values():
            recording.doubt(doubt)
        return recording

    @property
    def has_notebook_names(self) -> bool:
        """True if the script uses names that only a notebook has."""
        return any(name.startswith("name ") for name in self.absent)

    @property
    def has_utilities(self) -> bool:
        """True if the script uses names that only a notebook of Databricks, Fabric or Synapse has."""
        return any(name in self.absent for name in _UTILITIES)

    @contextlib.contextmanager
    def applied(self, session: SparkSession, recording: Recording, patches: Patches) -> Iterator[None]:
        """Provide placeholders for missing modules, for names of a notebook, and for skipped statements."""
        modules = {
            name.removeprefix("module "): doubt
            for name, doubt in self.absent.items()
            if name.startswith("module ")
        }
        finder = AbsentModuleFinder(modules)
        names: dict[str, Any] = {
            name.removeprefix("name "): NotebookUtilities(doubt, recording)
            if name in _UTILITIES
            else Absent(doubt)
            for name, doubt in self.absent.items()
            if name.startswith("name ")
        }
        names[RUN] = partial(run_notebook, recording, self.skipped)
        names[DELETE] = partial(delete_folders, recording)
        for function in sorted(self.assumed.functions):
            session.udf.register(function, lambda *_args, **_named: None, "string")
        if self.folder is not None:
            os.chdir(self.folder)
        context = session.sparkContext
        own = (("spark", session), ("sc", context), ("sqlContext", SQLContext(context, session)))
        names |= {name: value for name, value in own if name in names}
        for name, value in names.items():
            setattr(builtins, name, value)
        sys.meta_path.append(finder)
        patches.wrap(type(os.environ), "__getitem__", self._read_variable)
        patches.set(expected, "are_true", self.says_yes)
        patches.set(expected, "decorated", set())
        patches.set(expected, "decisions", {})
        patches.set(expected, "with_arguments", self.with_arguments)
        self.searched_roots = list(self.roots)
        sys.path.extend(self.roots)
        try:
            with self.skipped.applied(patches, lambda doubt, role: _stand_in(doubt, recording, role)):
                yield
        finally:
            sys.meta_path.remove(finder)
            for name in names:
                delattr(builtins, name)
            forget_absent_modules()

    def _read_variable(self, original: Any, variables: Any, name: Any) -> Any:
        """Return an environment variable, or a placeholder for one that an earlier run lacked."""
        try:
            return original(variables, name)
        except KeyError:
            doubt = self.absent.get(f"{_VARIABLE}{name}")
            if doubt is None:
                raise
            return Absent(doubt)

    def provide(self, error: BaseException, path: Path, recording: Recording) -> bool:
        """Give the next run a module or a name that this one lacked. False if that is not what it lacked."""
        # The script may end because of a missing module that it handles.
        last = error
        error = next((each for each in error_chain(error) if isinstance(each, ModuleNotFoundError)), error)
        if isinstance(error, ModuleNotFoundError) and error.name:
            root = find_package_root(error.name, path)
            if root is not None and str(root) not in (*self.searched_roots, *sys.path):
                # Several files of a project may lack the same module in one run.
                self.roots += [] if str(root) in self.roots else [str(root)]
                return True
        if isinstance(error, ImportError) and _RELATIVE in str(error) and not self.package:
            root = list_project_folders(path)[-1]
            self.package = ".".join(path.resolve().parent.relative_to(root).parts)
            self.roots.append(str(root))
            return bool(self.package)
        if (function := _LACKS_ARGUMENTS.match(str(error))) and isinstance(error, TypeError):
            new = {function[1]} & expected.decorated - self.with_arguments
            self.with_arguments |= new
            if new:
                return True
        folder = _find_folder(error, path) if self.folder is None else None
        if folder is not None:
            self.folder = folder
            return True
        if (routine := missing_function(error)) and routine not in self.assumed.functions:
            self.assumed.functions.add(routine)
            return True
        if recording.has_refused_connection and not self.has_servers and not _is_refusal(error):
            self.has_servers = True
            return True
        variable = _missing_variable(error, path)
        if variable is not None and variable.what not in self.absent:
            self.absent[variable.what] = variable
            return True
        if recording.decoded:
            self.assumed.learn([doubt.what for doubt in recording.decoded], error)
            if self.assumed.has_grown:
                return True
        if self._has_caught_imports(error, path):
            return True
        missing = _missing(error, path, recording) or self._missing_name(error, path)
        if missing is not None and missing.what not in self.absent:
            steps = traceback.walk_tb(error.__traceback__)
            if not any(is_user_file(frame.f_code.co_filename) for frame, _ in steps):
                # A library has handled it, and lacks the module that it takes instead.
                missing = replace(missing, span=error_span(last, path))
            self.absent[missing.what] = missing
            return True
        if self.folder is None and _depends_on_folder(error):
            self.folder = path.resolve().parent
            return True
        return False

    def _has_caught_imports(self, error: BaseException, path: Path) -> bool:
        """Provide the modules whose absence the script has caught, if this leaves a name unset that it needs."""
        name = _UNSET_NAME.search(str(error)) if isinstance(error, NameError) else None
        if name is None:
            return False
        frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
        own = frame.f_code.co_filename
        # Another cell of a notebook may have the import.
        cells = sorted(map(str, Path(own).parent.glob("cell-*.py"))) if path.suffix == ".ipynb" else []
        known = len(self.absent), len(self.roots)
        for file in dict.fromkeys((own, *cells)):
            for module, line in list_caught_imports(file, name[1]):
                root = find_package_root(module, path)
                if root is not None and str(root) not in (*self.searched_roots, *sys.path):
                    self.roots += [] if str(root) in self.roots else [str(root)]
                else:
                    missing = _missing_module(module, call_sites.line_span(file, line))
                    self.absent.setdefault(missing.what, missing)
        return known != (len(self.absent), len(self.roots))

    def _missing_name(self, error: BaseException, path: Path) -> Doubt | None:
        """Return the name that a file or a notebook has from `from module import *` of a module that is not here."""
        if not isinstance(error, NameError):
            return None
        frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
        text = "".join(linecache.getlines(frame.f_code.co_filename))
        if path.suffix == ".ipynb":
            # Another cell may have the import.
            text += read_cells(path)
        for module in _STAR_IMPORT.findall(text):
            parts = module.split(".")
            names = {"module " + ".".join(parts[: count + 1]) for count in range(len(parts))}
            if absent := sorted(names & self.absent.keys()):
                reason = f"{absent[0]}, which is not installed here, may define it"
                return Doubt(f"name {error.name}", reason, error_span(error, path))
        return None

    def skip_cause(self, error: BaseException, recording: Recording, usage: str) -> tuple[bool, bool]:
        """Leave out the statement that fails only in a check. Returns whether there is one, and if it is a new one.

        `usage` is what the script printed last.
        """
        cause = find_cause(error, recording, usage)
        return cause is not None, cause is not None and self.skipped.add(*cause)


def _find_folder(error: BaseException, path: Path) -> Path | None:
    """Return the folder of the script or one above it that has a file which the script names relative to one."""
    names = [error.filename] if isinstance(error, FileNotFoundError) else []
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if frames and frames[-1].f_globals.get("__name__") == configparser.__name__:
        # It ignores files that are missing.
        names = _SETTINGS_FILE.findall(path.read_text(encoding="utf-8", errors="replace"))
    relative = [name for name in names if isinstance(name, str) and not Path(name).is_absolute()]
    return next(
        (
            folder
            for folder in list_project_folders(path)
            for name in relative
            if not Path(name).exists() and (folder / name).is_file()
        ),
        None,
    )


def _depends_on_folder(error: BaseException) -> bool:
    """Return whether a script that asks for the current folder ends itself: notebooks run in their own folder."""
    steps = list(traceback.walk_tb(error.__traceback__))
    if not steps:
        return False
    frame, line = steps[-1]
    statement = call_sites.find_statement(frame, line)
    is_own_end = statement is not None and isinstance(statement[0], ast.Raise)
    return (
        is_own_end
        and _CURRENT_FOLDER.search("".join(linecache.getlines(frame.f_code.co_filename))) is not None
    )


def _is_refusal(error: BaseException) -> bool:
    """Return whether an error is that of a connection, or what a script makes of it."""
    return any(isinstance(each, ConnectionError | RefusedCall) for each in error_chain(error))


def _stand_in(doubt: Doubt, recording: Recording, role: Role) -> Any:
    """Return the placeholder for the result of a statement. If it starts a query, record an unknown one."""
    recording.doubt(doubt)
    if role is Role.TABLE:
        return absent.open_frame[0](doubt, streaming=False)
    if role is Role.QUERY:
        return Unknown(doubt, recording, streaming=True).writeStream.start()
    return Absent(doubt)


def _missing_variable(error: BaseException, path: Path) -> Doubt | None:
    """Return the environment variable whose absence ended the script: `os.environ[name]` has no default."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if (
        not isinstance(error, KeyError)
        or not frames
        or frames[-1][0].f_globals.get("__name__") != os.__name__
    ):
        return None
    fix = f"set it for the check: {error.args[0]}=… millstream check …"
    return Doubt(f"{_VARIABLE}{error.args[0]}", "it is not set here", error_span(error, path), fix)


def _missing_module(name: str, span: Span | None) -> Doubt:
    is_removed = name.partition(".")[0] == "pyspark"
    reason = (
        f"PySpark {pyspark.__version__} does not have it, so what the script does with it is not checked"
        if is_removed
        else "it is not installed here, so the code that uses it is not checked"
    )
    fix = (
        "" if is_removed else "install it in the environment of Millstream, so that this code can be checked"
    )
    return Doubt(f"module {name}", reason, span, fix)


def _missing(error: BaseException, path: Path, recording: Recording) -> Doubt | None:
    """Return the module or name whose absence ended the script."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing_module(error.name, error_span(error, path))
    if isinstance(error, NameError) and (
        error.name in (*NOTEBOOK, *_OF_SHELL) or str(error.name).startswith(_GIVEN_BY_FABRIC)
    ):
        reason = "notebooks and pipelines of a platform define this name, and a check does not have it"
        return Doubt(f"name {error.name}", reason, error_span(error, path))
    if isinstance(error, NameError) and any(
        doubt.what.startswith(NOTEBOOK_DOUBT) for doubt in recording.doubts
    ):
        reason = "a notebook that is not among the files here may define it"
        return Doubt(f"name {error.name}", reason, error_span(error, path))
    return None
