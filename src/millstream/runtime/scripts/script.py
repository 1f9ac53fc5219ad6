"""Run a PySpark script with reading and starting intercepted, and record what it asks of Spark."""

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

from millstream.diagnostics.failure import MillstreamError
from millstream.runtime import complaints
from millstream.runtime.planning import callsites
from millstream.runtime.scripts import calls
from millstream.runtime.scripts.handle import Manager
from millstream.runtime.scripts.house import House, Refused, Waits, as_python_runs, time_limit
from millstream.runtime.scripts.patches import Patches
from millstream.runtime.scripts.reading import Reading
from millstream.runtime.scripts.record import Doubt, Recording
from millstream.runtime.scripts.sessions import Sessions
from millstream.runtime.scripts.statements import Statements
from millstream.runtime.scripts.unknown import Absent
from millstream.runtime.scripts.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.diagnostics.finding import Span

# A script that needs longer, in seconds, waits for something in a way that is not known here.
PATIENCE = 60.0

# Names that a notebook gives its cells, and a file does not have.
NOTEBOOK = ("dbutils", "display", "displayHTML")

# Of these a check has its own.
_GIVEN = ("name spark", "name sc")

# How many modules that are not installed are stood in for, one run of the script each.
MOST_ABSENT = 20


@dataclass(frozen=True)
class Raised:
    """An error that ended the script, in words, at the user's own line."""

    what: str
    why: str
    span: Span | None
    fix: str = ""
    emptiness: bool = False
    """Is it of the kind that a missing row raises?"""


@dataclass
class Ran:
    """What became of a script."""

    recording: Recording
    texts: dict[str, calls.Given] = field(default_factory=dict)
    """What the user gave to Spark, by the SQL text that Spark was shown."""
    raised: Raised | None = None
    endless: bool = False
    script: bool = True
    """Is it a script, and not a project whose queries Spark starts?"""


def run(spark: SparkSession, path: Path, args: Sequence[str] = ()) -> Ran:
    """Run the script as `python path args…` would, in this process, with nothing connected to and nothing written.

    A module that is not installed is stood in for: the script is run again with it. Never raises for what the
    script does.
    """
    absent: dict[str, Doubt] = {}
    while True:
        ran, missing = _once(spark, path, list(args), absent)
        if missing is None or missing.what in absent or len(absent) >= MOST_ABSENT:
            return ran
        absent[missing.what] = missing


def _once(
    spark: SparkSession, path: Path, args: list[str], absent: dict[str, Doubt]
) -> tuple[Ran, Doubt | None]:
    """One run; the second value is what was not there, where that ended it."""
    recording = Recording(doubts=[one for one in absent.values() if one.what not in _GIVEN])
    ran = Ran(recording)
    calls.begin()
    with (
        intercepted(spark, recording) as inside,
        as_python_runs(path, args),
        _stand_ins(absent, inside.session),
    ):
        ran.texts = inside.statements.texts
        module = types.ModuleType("__main__")
        module.__file__ = str(path)
        # Functions of the script are found by the name of their module, as in a run of their own.
        sys.modules["__main__"] = module
        try:
            with time_limit(PATIENCE):
                exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # noqa: S102 - it is asked for
        except Waits:
            ran.endless = True
        except SystemExit as left:
            if left.code not in (None, 0):
                fix = "if it wants arguments, give them after its name"
                ran.raised = Raised(f"it leaves with {left.code!r}", "", _line(left, path), fix)
        except Exception as wrong:
            if _ours(wrong):
                raise
            if (missing := _missing(wrong, path)) is not None and missing.what not in absent:
                return ran, missing
            ran.raised = told(wrong, path, ran.texts)
    return ran, None


@dataclass
class Inside:
    """What stands in Spark's place while the user's code runs."""

    session: SparkSession
    reading: Reading
    statements: Statements


@contextlib.contextmanager
def intercepted(spark: SparkSession, recording: Recording) -> Iterator[Inside]:
    """Spark's classes with reading, writing and starting replaced, and a session of its own, until the block ends."""
    before = SparkSession._instantiatedSession, SparkSession._activeSession
    lent = spark.newSession()
    kind = SparkSession._get_j_spark_session_class(spark._jvm)
    # In the private folder of the system's own: a script must not see it, nor what others keep there.
    with (
        tempfile.TemporaryDirectory(prefix="millstream-check-") as private,
        callsites.noted(lent),
        Patches() as patches,
    ):
        empty = Path(private, "empty")
        empty.mkdir()
        Path(private, "tmp").mkdir()
        reading = Reading(recording, str(empty))
        statements = Statements(recording, reading)
        reading.install(patches)
        statements.install(patches)
        Writing(recording).install(patches)
        Manager(recording).install(patches)
        Sessions(lent, recording, reading).install(patches)
        House(recording, Path(private, "tmp"), Path(lent.sparkContext._temp_dir)).install(patches)
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
    """The user's line, for Spark to keep beside what it makes of the call."""
    frame = calls.users_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextlib.contextmanager
def _stand_ins(absent: dict[str, Doubt], session: SparkSession) -> Iterator[None]:
    """What the script misses: modules, and the names that a notebook gives."""
    given: dict[str, Any]
    modules = {
        name.removeprefix("module "): doubt for name, doubt in absent.items() if name.startswith("module ")
    }
    finder = _Finder(modules)
    given = {
        name.removeprefix("name "): Absent(doubt)
        for name, doubt in absent.items()
        if name.startswith("name ")
    }
    given |= {
        name: value for name, value in (("spark", session), ("sc", session.sparkContext)) if name in given
    }
    for name, value in given.items():
        setattr(builtins, name, value)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in given:
            delattr(builtins, name)
        for name in [one for one, module in sys.modules.items() if isinstance(module, _Module)]:
            del sys.modules[name]


class _Finder(MetaPathFinder, Loader):
    """Finds a module that is not installed, and all below it."""

    def __init__(self, modules: dict[str, Doubt]) -> None:
        self._modules = modules

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """A module of that name, where it is one of those."""
        known = any(name == one or name.startswith(f"{one}.") for one in self._modules)
        return ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """The stand-in."""
        doubt = next(found for one, found in self._modules.items() if f"{spec.name}.".startswith(f"{one}."))
        return _Module(spec.name, doubt)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


class _Module(types.ModuleType):
    """A module that is not installed."""

    def __init__(self, name: str, doubt: Doubt) -> None:
        super().__init__(name)
        self.__dict__["_doubt"] = doubt

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(self.__dict__["_doubt"])


def _ours(wrong: Exception) -> bool:
    """Is it a defect of what stands in Spark's place, and not of the script's?"""
    frames = [frame for frame, _ in traceback.walk_tb(wrong.__traceback__)]
    told_on_purpose = isinstance(wrong, PySparkException | MillstreamError | Refused | ConnectionRefusedError)
    # The user's wrong arguments are found where our method is called.
    arguments = isinstance(wrong, TypeError) and "argument" in str(wrong)
    # What Python itself says of a file, through the wrapper that asked it.
    files = isinstance(wrong, OSError | ValueError) and frames[-1].f_globals["__name__"] == House.__module__
    # Without a frame of the script, it could not even be read.
    started = any(calls.is_users(frame.f_code.co_filename) for frame in frames)
    return started and not (told_on_purpose or arguments or files) and calls.is_ours(frames[-1])


def _missing(wrong: Exception, path: Path) -> Doubt | None:
    """The module or name whose absence ended the script."""
    if isinstance(wrong, ModuleNotFoundError) and wrong.name:
        why = "it is not installed here; what the script makes with it is not judged"
        return Doubt(
            f"module {wrong.name}", why, _line(wrong, path), "install it beside Millstream to have it judged"
        )
    if isinstance(wrong, NameError) and wrong.name in (*NOTEBOOK, "spark", "sc"):
        why = "a notebook gives this name, and a script does not have it"
        return Doubt(f"name {wrong.name}", why, _line(wrong, path))
    return None


def told(wrong: BaseException, path: Path, texts: dict[str, calls.Given], text: str | None = None) -> Raised:
    """An error in words; `text` is the SQL that it is about, where that is known."""
    if isinstance(wrong, SyntaxError):
        place = calls.line_span(wrong.filename or str(path), wrong.lineno or 1)
        return Raised(f"the script cannot be read: {wrong.msg}", "", place)
    if not isinstance(wrong, Exception):
        return Raised(f"it ends itself: {type(wrong).__name__} {wrong}", "", _line(wrong, path))
    what, why = complaints.words(wrong)
    span = _line(wrong, path)
    text = text or _given(wrong, texts)
    if isinstance(wrong, PySparkException) and text in texts:
        span = calls.within(texts[text], *complaints.stretch(wrong, text))
    none = isinstance(wrong, IndexError | KeyError | StopIteration | ZeroDivisionError) or (
        isinstance(wrong, TypeError | AttributeError) and "NoneType" in str(wrong)
    )
    return Raised(what, why, span, complaints.cure(wrong), emptiness=none)


def _given(wrong: Exception, texts: dict[str, calls.Given]) -> str | None:
    """The SQL text that an error is about: the last one that was given, where it was given on the failing line."""
    last = next(reversed(texts), None)
    if not isinstance(wrong, PySparkException):
        return None
    spoken = any(context.contextType().name == "SQL" for context in wrong.getQueryContext() or ())
    return last if spoken or isinstance(wrong, ParseException) else None


def _line(wrong: BaseException, path: Path) -> Span | None:
    """The innermost line of the user's that an error went through."""
    found = None
    for frame, _ in traceback.walk_tb(wrong.__traceback__):
        if calls.is_users(frame.f_code.co_filename):
            found = frame
    if found is None:
        return calls.line_span(str(path), 1) if path.is_file() else None
    last = [entry for entry in _entries(wrong) if entry[0] is found]
    return calls.span_of(found, last[-1][1] if last else None)


def _entries(wrong: BaseException) -> list[tuple[types.FrameType, int]]:
    found, entry = [], wrong.__traceback__
    while entry is not None:
        found.append((entry.tb_frame, entry.tb_lasti))
        entry = entry.tb_next
    return found
