"""Find out whether an error of a script has its cause in the check, and not in the script."""

from __future__ import annotations

import ast
import configparser
import os
import pickle
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException, PySparkException

from millstream.checking.compat.error_parser import split_message
from millstream.checking.scripts.execution.argument_parsers import missing_argument
from millstream.checking.scripts.execution.control_flow import (
    find_decision,
    find_expected_failure,
    find_missing_row,
    find_unset_name,
    walk_header,
)
from millstream.checking.scripts.execution.module_search import find_other_version
from millstream.checking.scripts.execution.spark_version import find_former_name, find_later_method
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK, Absent, AbsentBase, AbsentError
from millstream.checking.scripts.interception.audit_hook import RefusedCall
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import Doubt
from millstream.checking.scripts.interception.writers import MisspelledMethodError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from millstream.checking.scripts.execution.skipped_statements import Place
    from millstream.checking.scripts.interception.recording import Recording

# Modules that end a script whose arguments are missing.
_ARGUMENT_PARSERS = ("argparse", "optparse", "getopt", "click.", "typer.", "absl.flags", "docopt")
_MODEL_READERS = ("loadMetadata", "load")
_PATH = re.compile(
    r"[\w.:~-]*/[\w./:~-]+|\b[\w-]+\.(?:json|ya?ml|toml|ini|cfg|conf|env|properties|csv|parquet|txt|sql|avsc)\b"
)
_ASKS_FOR_FILES = frozenset({"exists", "isfile", "isdir", "is_file", "is_dir", "glob", "iglob", "listdir"})
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


def find_cause(error: BaseException, recording: Recording, usage: str) -> tuple[Place, Doubt] | None:
    """Return the statement that fails only in a check, and the reason; None if the error is the script's own.

    `usage` is what the script printed last.
    """
    errors = list(error_chain(error))
    for raised in errors:
        if isinstance(raised, PySparkException) and str(raised.getCondition()).startswith("CANNOT_MODIFY"):
            # Spark refuses the setting whatever its value is.
            continue
        if isinstance(raised, MisspelledMethodError):
            # No stream has this method, whatever its columns are.
            continue
        steps = list(traceback.walk_tb(raised.__traceback__))
        own = [
            index
            for index, (frame, _) in enumerate(steps)
            if call_sites.is_user_file(frame.f_code.co_filename)
        ]
        if not own:
            continue
        frame, line = steps[own[-1]]
        statement_found = call_sites.find_statement(frame, line)
        if statement_found is None:
            continue
        statement, conditions = statement_found
        span = call_sites.line_span(frame.f_code.co_filename, line)
        library = [inner for inner, _ in steps[own[-1] + 1 :]]
        named = [statement, *(condition.test for condition in conditions)]
        doubt = (
            _refused_call(raised, span)
            or _arguments(raised, library, statement, conditions, span, usage)
            or _variable(raised, library, frame, span)
            or _missing_file(raised, span)
            or _missing_settings(raised, library, span)
            or _missing_folder(raised, library, span)
            or _pickled(raised, span)
            or _stand_in(raised, library, frame, named, recording)
            or find_other_version(raised, library, span)
            or _other_dialect(raised, recording, span)
            or find_former_name(raised, recording.spark_version, span)
            or find_later_method(raised, library, recording.spark_version, span)
            or _decoded(raised, recording)
            or _listed(raised, recording)
            or _unset_variable(raised, frame, named, recording, span)
            or _missing_model(library, span)
            or (_search(named, span) if isinstance(raised, IndexError | ValueError) else None)
            or find_missing_row(raised, library, recording, span)
            or _own_end(raised, statement, named, recording, span)
            or find_expected_failure(statement, frame.f_code.co_filename, span)
            or find_unset_name(raised, frame, recording, span)
            # A later error follows from the first one.
            or (
                find_decision(raised, [steps[index] for index in own], named, span)
                if raised is errors[0]
                else None
            )
        )
        if doubt is not None:
            return (frame.f_code.co_filename, statement.lineno, statement.col_offset), doubt
    return None


def error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error that came first, then those that the script raised while it handled it."""
    errors: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in errors:
        errors.append(current)
        current = current.__cause__ or current.__context__
    return reversed(errors)


def _refused_call(error: BaseException, span: Any) -> Doubt | None:
    """Return the doubt about a call that a check refuses: a connection, a program, a file."""
    if not isinstance(error, RefusedCall) and "a check does not" not in str(error):
        return None
    message = str(error).replace(MARK, "…")
    return Doubt(
        "the result of this call",
        "the check continues as if the call had returned nothing",
        span,
        message=message,
    )


def _arguments(
    error: BaseException,
    library: list[FrameType],
    statement: ast.stmt,
    conditions: list[Any],
    span: Any,
    usage: str,
) -> Doubt | None:
    """Return the doubt about arguments that the script was not given."""
    modules = [f"{frame.f_globals.get('__name__', '')}." for frame in library]
    is_parser = any(module.startswith(_ARGUMENT_PARSERS) for module in modules)
    expressions = [statement, *(condition.test for condition in conditions)]
    reads = any(_is_argv(node) for part in expressions for node in ast.walk(part))
    if not (isinstance(error, SystemExit) and (is_parser or reads)) and not (
        isinstance(error, IndexError | ValueError | TypeError) and reads
    ):
        return None
    lines = [line.strip() for line in usage.strip().splitlines() if line.strip()]
    why = (
        "; ".join(lines[-2:]) if is_parser or isinstance(error, SystemExit) else f"it got {len(sys.argv) - 1}"
    )
    return missing_argument(why, span)


def _is_argv(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "argv") or (
        isinstance(node, ast.Name) and node.id == "argv"
    )


def _variable(error: BaseException, library: list[FrameType], frame: FrameType, span: Any) -> Doubt | None:
    """Return the doubt about an environment variable that is not set: Python misses it, or the script says so."""
    if isinstance(error, KeyError) and library and library[-1].f_globals.get("__name__") == "os":
        name = str(error.args[0])
    elif isinstance(error, Exception | SystemExit) and not library:
        words = _VARIABLE.findall(str(error))
        missing = [word for word in words if word not in os.environ and _asks_for(frame, word)]
        if not missing:
            return None
        name = missing[0]
    else:
        return None
    fix = f"set it for the check: {name}=… millstream check …"
    return Doubt(f"environment variable {name}", "it is not set here", span, fix)


def _asks_for(frame: FrameType, variable: str) -> bool:
    """Return whether the file of a frame reads an environment variable."""
    text = _read_file(frame.f_code.co_filename)
    return ("environ" in text or "getenv" in text) and variable in text


def _read_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _missing_file(error: BaseException, span: Any) -> Doubt | None:
    """Return the doubt about a file that the script reads, and that is not on this machine."""
    if isinstance(error, PySparkException) and error.getCondition() == "PATH_NOT_FOUND":
        path = (error.getMessageParameters() or {}).get("path", "").replace(MARK, "…")
        fix = "put a copy where the script reads it"
        return Doubt(f"the file {path}", "it does not exist on this machine", span, fix)
    if not isinstance(error, FileNotFoundError):
        return None
    name = error.filename if error.errno is not None else _find_missing_path(str(error))
    if not isinstance(name, str):
        return None
    name = name.replace(MARK, "…")
    fix = "put a copy where the script reads it"
    return Doubt(f"the file {name}", "it does not exist on this machine", span, fix)


def _find_missing_path(message: str) -> str | None:
    """Return the path in an error of the script itself that is no file or folder here; None if there is none."""
    paths = (word.rstrip(".,:;") for word in _PATH.findall(message))
    return next((path for path in paths if not Path(path).exists()), None)


def _missing_settings(error: BaseException, library: list[FrameType], span: Any) -> Doubt | None:
    """Return the doubt about settings that the script reads with `configparser`, which ignores a missing file."""
    if not library or library[-1].f_globals.get("__name__") != configparser.__name__:
        return None
    values = [frame.f_locals.get("self") for frame in library]
    parsers = [value for value in values if isinstance(value, configparser.RawConfigParser)]
    if not isinstance(error, KeyError | configparser.Error) or not any(
        not parser.sections() and not parser.defaults() for parser in parsers
    ):
        return None
    return Doubt(
        "the file of a ConfigParser",
        "it does not exist on this machine",
        span,
        "put a copy where the script reads it",
    )


def _missing_folder(error: BaseException, library: list[FrameType], span: Any) -> Doubt | None:
    """Return the doubt about a folder into which the script writes with pandas, and which a check did not make."""
    is_of_pandas = bool(library) and str(library[-1].f_globals.get("__name__")).startswith("pandas.io")
    if not (is_of_pandas and isinstance(error, OSError) and "non-existent directory" in str(error)):
        return None
    return Doubt("the folder of a file that the script writes", "a check does not make folders", span)


def _pickled(error: BaseException, span: Any) -> Doubt | None:
    """Return the doubt about an object that cannot be read: its classes or the file's content are not here."""
    is_of_class = isinstance(error, AttributeError) and str(error).startswith("Can't get attribute ")
    if not isinstance(error, pickle.UnpicklingError) and not is_of_class:
        return None
    return Doubt(
        "the object in a file of pickle", "its classes, or its content, are not on this machine", span
    )


def _stand_in(
    error: BaseException, library: list[FrameType], frame: FrameType, named: list[Any], recording: Recording
) -> Doubt | None:
    """Return the doubt of the stand-in that took part in an error."""
    values = [value for inner in library for value in inner.f_locals.values()]
    values += [value for part in named for value in _values(part, frame)]
    doubt = next((doubt for value in values if (doubt := doubt_of(value)) is not None), None)
    has_mark = any(isinstance(value, str) and MARK in value for value in values)
    if doubt is None and (isinstance(error, AbsentError) or MARK in str(error) or has_mark):
        known = [*recording.doubts, *(frame.doubt for frame in recording.unknown.values())]
        doubt = known[-1] if known else Doubt("a value", "it is not known in a check", None)
    return doubt


def doubt_of(value: Any, depth: int = 2) -> Doubt | None:
    """Return the doubt of a stand-in, or of the first one in a collection or in the attributes of an object."""
    if isinstance(value, Absent):
        return value.doubt
    if type(value) is Unknown:
        return value.doubt
    if isinstance(value, Doubt):
        return value
    if isinstance(value, AbsentBase):
        return value._doubt
    if not depth:
        return None
    inside: Any = ()
    if type(value) in (list, tuple, set):
        inside = value
    elif type(value) is dict:
        inside = value.values()
    elif isinstance(getattr(value, "__dict__", None), dict):
        inside = vars(value).values() if _is_own_class(type(value)) else [vars(value).get("_doubt")]
    return next(
        (doubt for item in list(inside)[:50] if (doubt := doubt_of(item, depth - 1)) is not None), None
    )


def _is_own_class(kind: type) -> bool:
    """Return whether the script, or a file of its project, defines a class."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and call_sites.is_user_file(file)


def _values(node: ast.AST, frame: FrameType) -> Iterator[Any]:
    """Yield the values of the names and attributes that a statement reads, without calling anything."""
    for part in walk_header(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield frame.f_locals.get(part.id, frame.f_globals.get(part.id))
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            owner = frame.f_locals.get(part.value.id, frame.f_globals.get(part.value.id))
            yield getattr(owner, "__dict__", {}).get(part.attr)


def _other_dialect(error: BaseException, recording: Recording, span: Any) -> Doubt | None:
    """Return the doubt about a statement of a notebook that Spark's parser refuses: Databricks has more SQL."""
    if not recording.is_notebook or not isinstance(error, ParseException):
        return None
    why = f"Spark's parser does not accept it, and that of Databricks may: {split_message(error)[0]}"
    return Doubt("an SQL statement", why, span)


def _unset_variable(
    error: BaseException, frame: FrameType, named: list[Any], recording: Recording, span: Any
) -> Doubt | None:
    """Return the doubt about variables that are not set, if the statement that fails uses None."""
    variables = recording.unset_variables or recording.empty_variables
    is_own_end = isinstance(error, SystemExit) or isinstance(named[0], ast.Raise)
    if not variables or not (is_own_end or isinstance(error, ValueError | TypeError | AttributeError)):
        return None
    values = [value for part in named for value in _values(part, frame)]
    # The statement itself may ask for the variable.
    texts = {node.value for part in named for node in ast.walk(part) if isinstance(node, ast.Constant)}
    if texts.isdisjoint(variables) and not any(
        value is None
        or (type(value) is dict and None in value.values())
        or (is_own_end and isinstance(value, str) and not value)
        for value in values
    ):
        return None
    names = ", ".join(variables)
    fix = f"set it for the check: {variables[0]}=… millstream check …"
    return Doubt(f"environment variable {names}", "it is not set here", span, fix)


def _own_end(
    error: BaseException, statement: ast.stmt, named: list[Any], recording: Recording, span: Any
) -> Doubt | None:
    """Return the doubt about a file or a server without which the script ends itself."""
    if not isinstance(error, SystemExit) and not isinstance(statement, ast.Raise):
        return None
    if (search := _search(named, span)) is not None:
        return search
    if recording.has_refused_connection:
        return Doubt("the answer of a server", "a check does not connect to it", span)
    return None


def _search(named: list[Any], span: Any) -> Doubt | None:
    """Return the doubt about files that a statement looks for."""
    calls = [node for part in named for node in ast.walk(part) if isinstance(node, ast.Call)]
    for call in calls:
        if (call.func.attr if isinstance(call.func, ast.Attribute) else "") in _ASKS_FOR_FILES:
            why = "it does not exist on this machine"
            return Doubt(f"what {ast.unparse(call)[:60]} looks for", why, span)
    return None


def _decoded(error: BaseException, recording: Recording) -> Doubt | None:
    """Return the doubt about the schema of messages whose columns an error of Spark is about."""
    about = ("UNRESOLVED", "FIELD_NOT_FOUND", "DATATYPE_MISMATCH", "INVALID_EXTRACT", "EVENT_TIME_IS_NOT")
    is_about_columns = isinstance(error, PySparkException) and str(error.getCondition()).startswith(about)
    return recording.decoded[-1] if is_about_columns and recording.decoded else None


def _listed(error: BaseException, recording: Recording) -> Doubt | None:
    """Return the doubt about columns of which the script made a list, if a function got too few arguments."""
    is_about_number = isinstance(error, PySparkException) and str(error.getCondition()).startswith(
        "WRONG_NUM"
    )
    return recording.listed if is_about_number else None


def _missing_model(library: list[FrameType], span: Any) -> Doubt | None:
    """Return the doubt about a model that the script loads with `pyspark.ml`."""
    for frame in library:
        # `load` reads a model that is here, whose files may be stored elsewhere, as with Git LFS.
        if frame.f_globals.get("__name__") == "pyspark.ml.util" and frame.f_code.co_name in _MODEL_READERS:
            path = str(frame.f_locals.get("path", "")).replace(MARK, "…")
            return Doubt(f"the model {path}", "a check does not load models", span)
    return None
