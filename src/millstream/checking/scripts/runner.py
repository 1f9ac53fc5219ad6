"""Run a PySpark script with its reads and query starts intercepted, and record its calls to Spark."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import sys
import tempfile
import time
import types
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import utils as error_utils
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

from millstream.analysis.python.parsing import parse_python
from millstream.checking.compat import star_imports
from millstream.checking.query_plan import dataframe_calls
from millstream.checking.scripts.execution import argument_parsers, control_flow, jvm_access
from millstream.checking.scripts.execution.broken_cells import compile_part
from millstream.checking.scripts.execution.caught_errors import CaughtErrors, is_mistake
from millstream.checking.scripts.execution.error_causes import find_cause
from millstream.checking.scripts.execution.module_search import find_repository
from millstream.checking.scripts.execution.retries import NOTHING_GIVEN, Retries
from millstream.checking.scripts.execution.script_errors import ScriptError, describe_error, is_bug
from millstream.checking.scripts.execution.spark_version import ANSI, find_spark_version
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import FOR_EACH_BATCH, Absent
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.readers import ReaderPatch
from millstream.checking.scripts.interception.recording import Doubt, Recording
from millstream.checking.scripts.interception.sandbox import ScriptSandbox, WaitReached
from millstream.checking.scripts.interception.sessions import Sessions
from millstream.checking.scripts.interception.sql_commands import Statements
from millstream.checking.scripts.interception.streaming_query import QueryManager
from millstream.checking.scripts.interception.writers import WriterPatch
from millstream.checking.scripts.script_process import as_python_runs, time_limit
from millstream.checking.syntax_check import EXPORTS, is_notebook

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.checking.scripts.execution.source_files import CodePart
    from millstream.checking.scripts.execution.spark_version import SparkVersion
    from millstream.checking.scripts.interception.recording import ScriptExecution
    from millstream.diagnostics.finding import Span

# Seconds. A script that runs longer waits for something in a way that is not recognised.
PATIENCE = 60.0

# Seconds for a script whose queries run, in a proof.
LONG_PATIENCE = 600.0

# The time zone of the session, which is UTC where Databricks or Microsoft runs it.
ZONE = "spark.sql.session.timeZone"

# Each missing module and each statement that is left out costs one more run of the script.
MOST_RUNS = 40
# The setting by which Spark refuses a column that belongs to two tables of a join. Spark 4.2 takes the column of
# `rows.groupBy(window(rows.time, "1 minute"))` for one, as earlier releases do not.
_AMBIGUITY = "spark.sql.analyzer.failAmbiguousSelfJoin"
_AMBIGUOUS_WINDOW = re.compile(r"Columns? window#\d+ are ambiguous")
# Seconds after which no further run is begun.
MOST_SECONDS = 45.0


@dataclass
class ScriptRun:
    """The result of running a script."""

    recording: Recording
    texts: dict[str, call_sites.SqlText] = field(default_factory=dict)
    """The user's original SQL, by the SQL text that Spark received."""
    raised: ScriptError | None = None
    is_endless: bool = False
    keeps_queries: bool = False
    """True for a notebook, whose queries run on after its last line."""
    spark_version: SparkVersion | None = None
    """The version of Spark for which the script is written, if it is known."""
    mentions_queries: bool = True
    """False if the script and the modules that it imports have neither `writeStream` nor Glue's `forEachBatch`."""
    is_script: bool = True
    """True for a script, false for a project whose queries Spark starts."""


def unreadable_script(error: SyntaxError, path: Path) -> ScriptRun:
    """Return the result for a file that is not Python."""
    return ScriptRun(Recording(), raised=describe_error(error, path, {}))


def run_script(
    spark: SparkSession,
    path: Path,
    parts: Sequence[CodePart],
    args: Sequence[str] = (),
    known_columns: Mapping[str, str] = NOTHING_GIVEN,
    execution: ScriptExecution | None = None,
) -> ScriptRun:
    """Run the script as `python path args…` would, in this process, without connecting or writing to anything.

    `parts` are its code: one, or the cells of a notebook. `known_columns` are those of tables, paths and topics.
    If a module is not installed, or a statement has no result in a check, a placeholder replaces it and the script
    runs again. With an `execution`, its queries run. Never raises for anything that the script does.
    """
    version = find_spark_version(path, "".join(part.text for part in parts))
    retries = Retries(known_columns, execution=execution, spark_version=version)
    end = time.monotonic() + MOST_SECONDS
    without_queries: ScriptRun | None = None
    for _ in range(MOST_RUNS):
        script_run, goes_further = _run_once(spark, path, parts, list(args), retries)
        if not goes_further and _may_start_more(script_run, retries):
            without_queries, retries.says_yes = script_run, True
        elif not goes_further or time.monotonic() > end:
            break
    return script_run if script_run.recording.queries or without_queries is None else without_queries


def _may_start_more(script_run: ScriptRun, retries: Retries) -> bool:
    """Return whether a script that starts no query may do so if the values that are not known are true."""
    recording = script_run.recording
    is_cut = script_run.raised is not None and not script_run.raised.is_only_here
    has_doubts = bool(recording.doubts) or recording.has_taken_rows
    has_doubts = has_doubts and script_run.mentions_queries and recording.execution is None
    return has_doubts and not (recording.queries or is_cut or retries.says_yes)


def _run_once(
    spark: SparkSession, path: Path, parts: Sequence[CodePart], args: list[str], retries: Retries
) -> tuple[ScriptRun, bool]:
    """Run the script once. The second value is whether another run can go further, with what `retries` has gained."""
    if retries.folder is not None:
        # The script's own files are found from its folder too.
        path, parts = path.resolve(), [replace(part, file=str(Path(part.file).resolve())) for part in parts]
    recording = retries.recording()
    recording.project = find_repository(path)
    script_run = ScriptRun(recording, keeps_queries=retries.has_notebook_names or is_notebook(path))
    recording.is_notebook = script_run.keeps_queries
    script_run.mentions_queries = any(_starts_queries(part.text) for part in parts)
    call_sites.reset_caches()
    with (
        intercept_spark(spark, recording) as inside,
        as_python_runs(path, args) as printed,
        Patches() as patches,
        retries.applied(inside.session, recording, patches),
    ):
        script_run.texts = inside.statements.texts
        patches.after(partial(_note_imported_queries, script_run))
        version = retries.spark_version
        if version is not None and not version.has_ansi_mode:
            inside.session.conf.set(ANSI, "false")
            recording.conf[ANSI] = "false"
            star_imports.restore_names(patches)
        script_run.spark_version = version
        if retries.has_ambiguous_window:
            inside.session.conf.set(_AMBIGUITY, "false")
        if retries.has_utilities or parts[0].text.startswith(EXPORTS):
            recording.conf.setdefault(ZONE, "UTC")
        module = types.ModuleType("__main__")
        module.__file__ = str(path)
        if retries.package:
            module.__package__ = retries.package
        # The script's functions are found by the name of their module, as in a normal run.
        sys.modules["__main__"] = module
        has_ended = False
        caught = CaughtErrors()
        try:
            with (
                _exit_as_end(),
                time_limit(PATIENCE if recording.execution is None else LONG_PATIENCE),
                caught if retries.is_traced else contextlib.nullcontext(),
            ):
                for part in parts:
                    code = compile_part(part, path, retries.skipped, vars(module), recording)
                    if code is None:
                        continue
                    try:
                        exec(code, vars(module))  # noqa: S102 - the purpose of the check
                    except WaitReached:
                        # Whoever runs a notebook may stop a cell that waits, and run the next one.
                        if part is parts[-1] or not script_run.keeps_queries:
                            raise
                        recording.waits[-1:] = [
                            replace(wait, is_bounded=True) for wait in recording.waits[-1:]
                        ]
                        _forget_names(part, vars(module), recording, None, only_missing=True)
                    except Exception as error:
                        # A script may raise anything. The other cells of a notebook can be run without this one.
                        if part is parts[-1] or not script_run.keeps_queries or is_bug(error):
                            raise
                        if _handle(error, script_run, path, retries, printed.getvalue()):
                            return script_run, True
                        _forget_names(part, vars(module), recording, call_sites.error_span(error, path))
            has_ended = True
            if script_run.raised is None:
                _raise_handled_error(recording, caught, printed.getvalue())
            if not recording.queries and not retries.is_traced:
                retries.is_traced = True
                return script_run, True
        except WaitReached:
            script_run.is_endless = True
        except (SystemExit, Exception) as error:
            if isinstance(error, Exception) and is_bug(error):
                raise
            goes_further = _handle(error, script_run, path, retries, printed.getvalue(), has_ended=has_ended)
            if not goes_further and _is_unexplained(error, script_run):
                # The script notes an error that it catches, and exits later.
                if not retries.is_traced:
                    retries.is_traced = True
                    return script_run, True
                goes_further = _explain_exit(script_run, caught, path, retries, printed.getvalue())
            return script_run, goes_further or retries.assumed.has_grown
    return script_run, retries.assumed.has_grown


def _starts_queries(text: str) -> bool:
    return "writeStream" in text or FOR_EACH_BATCH in text


def _note_imported_queries(script_run: ScriptRun) -> None:
    """Note whether a module of the user that the script has imported starts queries."""
    files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    own = sorted(file for file in files if file and call_sites.is_user_file(file))
    if not script_run.mentions_queries:
        script_run.mentions_queries = any(_starts_queries("".join(linecache.getlines(file))) for file in own)


@contextlib.contextmanager
def _exit_as_end() -> Iterator[None]:
    """Take an exit without an error code for the end of the script."""
    try:
        yield
    except SystemExit as end:
        if end.code not in (None, 0):
            raise


def _forget_names(
    part: CodePart,
    names: dict[str, Any],
    recording: Recording,
    span: Span | None,
    *,
    only_missing: bool = False,
) -> None:
    """Put stand-ins in place of what a cell would have assigned that fails or waits."""
    doubt = Doubt("what this cell assigns", "the cell waits" if only_missing else "the cell fails", span)
    for node in ast.walk(parse_python(part.text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if only_missing and node.id in names:
                continue
            names[node.id] = Absent(recording.doubt(doubt))


def _handle(
    error: BaseException,
    script_run: ScriptRun,
    path: Path,
    retries: Retries,
    usage: str,
    *,
    has_ended: bool = False,
) -> bool:
    """Note the first error that ended a script or a cell. Returns whether another run can go further."""
    recording = script_run.recording
    if not retries.has_ambiguous_window and _AMBIGUOUS_WINDOW.search(str(error)):
        retries.has_ambiguous_window = True
        return True
    if retries.provide(error, path, recording):
        return True
    is_only_here, goes_further = retries.skip_cause(error, recording, usage)
    if script_run.raised is None:
        raised = describe_error(error, path, script_run.texts)
        is_handled = has_ended or raised.is_handled
        script_run.raised = replace(raised, is_only_here=is_only_here, is_handled=is_handled)
    return goes_further


def _is_unexplained(error: BaseException, script_run: ScriptRun) -> bool:
    """Return whether the script ends by an exit code that no error explains."""
    is_only_here = script_run.raised is not None and script_run.raised.is_only_here
    return isinstance(error, SystemExit) and error.__context__ is None and not is_only_here


def _explain_exit(
    script_run: ScriptRun, caught: CaughtErrors, path: Path, retries: Retries, usage: str
) -> bool:
    """Name the error that a script caught before its exit. Returns whether another run can go further without it."""
    error = script_run.recording.spark_error or caught.find_last(lambda _error: True)
    if error is None or script_run.raised is None:
        return False
    if retries.skip_cause(error, script_run.recording, usage)[1]:
        return True
    cause = describe_error(error, path, script_run.texts)
    where = f"{cause.span.file}:{cause.span.line}" if cause.span else "?"
    script_run.raised = replace(
        script_run.raised, why=f"the last error that it catches, at {where}, is {cause.what}"
    )
    return False


def _raise_handled_error(recording: Recording, caught: CaughtErrors, usage: str) -> None:
    """Raise the last error of Spark, of Python or of the check in a script that caught it and started no query."""
    error = recording.spark_error or caught.find_last(
        lambda error: is_mistake(error) or find_cause(error, recording, usage) is not None
    )
    if error is not None and not recording.queries and not is_bug(error):
        raise error


@dataclass
class ScriptPatches:
    """The replacements for Spark while the user's code runs."""

    session: SparkSession
    reading: ReaderPatch
    statements: Statements


@contextlib.contextmanager
def intercept_spark(spark: SparkSession, recording: Recording) -> Iterator[ScriptPatches]:
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
        WriterPatch(recording, partial(reading.unknown_frame, lent)).install(patches)
        QueryManager(recording).install(patches)
        Sessions(lent, recording, reading).install(patches)
        jvm_access.install(patches)
        argument_parsers.install(recording, patches)
        control_flow.install(recording, patches)
        ScriptSandbox(recording, Path(private, "tmp"), Path(lent.sparkContext._temp_dir)).install(patches)
        if recording.execution is not None:
            recording.execution.begin(patches)
        patches.set(error_utils, "_capture_call_site", _call_site)
        patches.wrap(captured, "convert_exception", partial(_record_error, recording))
        SparkSession._instantiatedSession = SparkSession._activeSession = lent
        kind.setActiveSession(lent._jsparkSession)
        kind.setDefaultSession(lent._jsparkSession)
        try:
            yield ScriptPatches(lent, reading, statements)
        finally:
            SparkSession._instantiatedSession, SparkSession._activeSession = before
            kind.setActiveSession(spark._jsparkSession)
            kind.setDefaultSession(spark._jsparkSession)


def _record_error(recording: Recording, original: Any, error: Any) -> Any:
    """Record an error of Spark, because the script may catch it."""
    recording.last_error = converted = original(error)
    return converted


def _call_site(_depth: int) -> str:
    """Return the user's line, which Spark stores with the nodes that the call creates."""
    frame = call_sites.find_user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
