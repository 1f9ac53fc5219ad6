"""Run a PySpark script with its reads and query starts intercepted, and record its calls to Spark."""

from __future__ import annotations

import builtins
import contextlib
import sys
import tempfile
import traceback
import types
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException, PySparkException
from pyspark.errors import utils as error_utils
from pyspark.sql import SparkSession

from millstream.checking.compat import error_parser
from millstream.checking.query_plan import dataframe_calls
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.audit_hook import RefusedCall
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.placeholders import Absent
from millstream.checking.scripts.interception.readers import ReaderPatch
from millstream.checking.scripts.interception.recording import Doubt, Recording
from millstream.checking.scripts.interception.sandbox import ScriptSandbox, Waits, as_python_runs, time_limit
from millstream.checking.scripts.interception.sessions import Sessions
from millstream.checking.scripts.interception.sql_commands import Statements
from millstream.checking.scripts.interception.streaming_query import Manager
from millstream.checking.scripts.interception.writers import WriterPatch
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.diagnostics.finding import Span

# Seconds. A script that runs longer waits for something in a way that is not recognised.
PATIENCE = 60.0

# Names that a notebook defines for its cells, and a script does not have.
NOTEBOOK = ("dbutils", "display", "displayHTML")

# Names for which the check has a value.
_PROVIDED = ("name spark", "name sc")

# The maximum number of missing modules that are replaced. Each of them costs one more run of the script.
MOST_ABSENT = 20


@dataclass(frozen=True)
class Raised:
    """An error that ended the script, with the user's line."""

    what: str
    why: str
    span: Span | None
    fix: str = ""
    is_missing_value: bool = False
    """True if a missing row may be the cause."""


@dataclass
class Ran:
    """The result of running a script."""

    recording: Recording
    texts: dict[str, call_sites.Given] = field(default_factory=dict)
    """The user's original SQL, by the SQL text that Spark received."""
    raised: Raised | None = None
    is_endless: bool = False
    is_script: bool = True
    """True for a script, false for a project whose queries Spark starts."""


def run_script(spark: SparkSession, path: Path, args: Sequence[str] = ()) -> Ran:
    """Run the script as `python path args…` would, in this process, without connecting or writing to anything.

    If a module is not installed, a placeholder replaces it and the script runs again. Never raises for anything
    that the script does.
    """
    absent: dict[str, Doubt] = {}
    while True:
        script_run, missing = _run_once(spark, path, list(args), absent)
        if missing is None or missing.what in absent or len(absent) >= MOST_ABSENT:
            return script_run
        absent[missing.what] = missing


def _run_once(
    spark: SparkSession, path: Path, args: list[str], absent: dict[str, Doubt]
) -> tuple[Ran, Doubt | None]:
    """Run the script once. The second value is the missing module or name that ended the run, or None."""
    recording = Recording(doubts=[doubt for doubt in absent.values() if doubt.what not in _PROVIDED])
    script_run = Ran(recording)
    call_sites.reset_caches()
    with (
        intercept_spark(spark, recording) as inside,
        as_python_runs(path, args),
        _placeholders(absent, inside.session),
    ):
        script_run.texts = inside.statements.texts
        module = types.ModuleType("__main__")
        module.__file__ = str(path)
        # The script's functions are found by the name of their module, as in a normal run.
        sys.modules["__main__"] = module
        try:
            with time_limit(PATIENCE):
                exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # noqa: S102 - the purpose of the check
        except Waits:
            script_run.is_endless = True
        except SystemExit as exit_error:
            if exit_error.code not in (None, 0):
                fix = "if the script needs arguments, pass them after its name"
                script_run.raised = Raised(
                    f"it exits with {exit_error.code!r}", "", _user_line(exit_error, path), fix
                )
        except Exception as error:
            if _is_bug(error):
                raise
            if (missing := _missing(error, path)) is not None and missing.what not in absent:
                return script_run, missing
            script_run.raised = describe_error(error, path, script_run.texts)
    return script_run, None


@dataclass
class Inside:
    """The replacements for Spark while the user's code runs."""

    session: SparkSession
    reading: ReaderPatch
    statements: Statements


@contextlib.contextmanager
def intercept_spark(spark: SparkSession, recording: Recording) -> Iterator[Inside]:
    """Replace reading, writing and starting in Spark's classes, in a separate session, until the block ends."""
    before = SparkSession._instantiatedSession, SparkSession._activeSession
    lent = spark.newSession()
    kind = SparkSession._get_j_spark_session_class(spark._jvm)
    # A private folder, because a script must see neither the system's temporary folder nor the files in it.
    with (
        tempfile.TemporaryDirectory(prefix="millstream-check-") as private,
        dataframe_calls.note_calls(lent),
        Patches() as patches,
    ):
        empty = Path(private, "empty")
        empty.mkdir()
        Path(private, "tmp").mkdir()
        reading = ReaderPatch(recording, str(empty))
        statements = Statements(recording, reading)
        reading.install(patches)
        statements.install(patches)
        WriterPatch(recording).install(patches)
        Manager(recording).install(patches)
        Sessions(lent, recording, reading).install(patches)
        ScriptSandbox(recording, Path(private, "tmp"), Path(lent.sparkContext._temp_dir)).install(patches)
        patches.set(error_utils, "_capture_call_site", _call_site)
        SparkSession._instantiatedSession = SparkSession._activeSession = lent
        kind.setActiveSession(lent._jsparkSession)
        kind.setDefaultSession(lent._jsparkSession)
        try:
            yield Inside(lent, reading, statements)
        finally:
            SparkSession._instantiatedSession, SparkSession._activeSession = before
            kind.setActiveSession(spark._jsparkSession)
            kind.setDefaultSession(spark._jsparkSession)


def _call_site(_depth: int) -> str:
    """Return the user's line, which Spark stores with the nodes that the call creates."""
    frame = call_sites.find_user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextlib.contextmanager
def _placeholders(absent: dict[str, Doubt], session: SparkSession) -> Iterator[None]:
    """Provide placeholders for missing modules and for the names that a notebook defines."""
    names: dict[str, Any]
    modules = {
        name.removeprefix("module "): doubt for name, doubt in absent.items() if name.startswith("module ")
    }
    finder = _Finder(modules)
    names = {
        name.removeprefix("name "): Absent(doubt)
        for name, doubt in absent.items()
        if name.startswith("name ")
    }
    names |= {
        name: value for name, value in (("spark", session), ("sc", session.sparkContext)) if name in names
    }
    for name, value in names.items():
        setattr(builtins, name, value)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in names:
            delattr(builtins, name)
        for name in [
            module_name for module_name, module in sys.modules.items() if isinstance(module, _Module)
        ]:
            del sys.modules[name]


class _Finder(MetaPathFinder, Loader):
    """Finds a module that is not installed, and all its submodules."""

    def __init__(self, modules: dict[str, Doubt]) -> None:
        self._modules = modules

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return a spec if the name is one of the missing modules or below it."""
        known = any(name == module or name.startswith(f"{module}.") for module in self._modules)
        return ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the placeholder."""
        doubt = next(
            candidate
            for module, candidate in self._modules.items()
            if f"{spec.name}.".startswith(f"{module}.")
        )
        return _Module(spec.name, doubt)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing, because a placeholder has no code."""


class _Module(types.ModuleType):
    """A placeholder for a module that is not installed."""

    def __init__(self, name: str, doubt: Doubt) -> None:
        super().__init__(name)
        self.__dict__["_doubt"] = doubt

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(self.__dict__["_doubt"])


def _is_bug(error: Exception) -> bool:
    """Return whether an error is a bug in the replacements for Spark, and not in the script."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_expected = isinstance(error, PySparkException | MillstreamError | RefusedCall | ConnectionRefusedError)
    # Wrong arguments of the user raise at the call of a replacement.
    is_argument_error = isinstance(error, TypeError) and "argument" in str(error)
    # Python's own errors about files pass through a replacement.
    is_file_error = (
        isinstance(error, OSError | ValueError)
        and frames[-1].f_globals["__name__"] == ScriptSandbox.__module__
    )
    # Without a frame of the script, the script could not even be parsed.
    has_started = any(call_sites.is_user_file(frame.f_code.co_filename) for frame in frames)
    return (
        has_started
        and not (is_expected or is_argument_error or is_file_error)
        and call_sites.is_millstream_frame(frames[-1])
    )


def _missing(error: Exception, path: Path) -> Doubt | None:
    """Return the module or name whose absence ended the script."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        reason = "it is not installed here, so what the script does with it is not checked"
        return Doubt(
            f"module {error.name}",
            reason,
            _user_line(error, path),
            "install it in Millstream's environment to have it checked",
        )
    if isinstance(error, NameError) and error.name in (*NOTEBOOK, "spark", "sc"):
        reason = "notebooks define this name, and scripts do not have it"
        return Doubt(f"name {error.name}", reason, _user_line(error, path))
    return None


def describe_error(
    error: BaseException, path: Path, texts: dict[str, call_sites.Given], text: str | None = None
) -> Raised:
    """Describe an error. `text` is the SQL that caused it, if known."""
    if isinstance(error, SyntaxError):
        location = call_sites.line_span(error.filename or str(path), error.lineno or 1)
        return Raised(f"the script cannot be read: {error.msg}", "", location)
    if not isinstance(error, Exception):
        return Raised(f"it exits: {type(error).__name__} {error}", "", _user_line(error, path))
    message, reason = error_parser.split_message(error)
    span = _user_line(error, path)
    text = text or _failed_text(error, texts)
    if isinstance(error, PySparkException) and text in texts:
        span = call_sites.span_within(texts[text], *error_parser.error_range(error, text))
    is_missing_value = isinstance(error, IndexError | KeyError | StopIteration | ZeroDivisionError) or (
        isinstance(error, TypeError | AttributeError) and "NoneType" in str(error)
    )
    return Raised(message, reason, span, error_parser.find_fix(error), is_missing_value=is_missing_value)


def _failed_text(error: Exception, texts: dict[str, call_sites.Given]) -> str | None:
    """Return the SQL text that caused an error: the last text that Spark received, if the error is about SQL."""
    last = next(reversed(texts), None)
    if not isinstance(error, PySparkException):
        return None
    is_sql = any(context.contextType().name == "SQL" for context in error.getQueryContext() or ())
    return last if is_sql or isinstance(error, ParseException) else None


def _user_line(error: BaseException, path: Path) -> Span | None:
    """Return the innermost line of the user's code in an error's traceback."""
    innermost = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if call_sites.is_user_file(frame.f_code.co_filename):
            innermost = frame
    if innermost is None:
        return call_sites.line_span(str(path), 1) if path.is_file() else None
    last = [entry for entry in _traceback_entries(error) if entry[0] is innermost]
    return call_sites.span_of(innermost, last[-1][1] if last else None)


def _traceback_entries(error: BaseException) -> list[tuple[types.FrameType, int]]:
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append((entry.tb_frame, entry.tb_lasti))
        entry = entry.tb_next
    return entries
