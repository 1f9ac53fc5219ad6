"""Load the pipeline that a Python file declares, by running the file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.api import Builder
from millstream.pipeline.load.document import YamlDocument
from millstream.pipeline.load.loader import LoadedSpec
from millstream.pipeline.load.places import ValuePositions
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ONE = "a spec in Python needs exactly one module-level pipeline, created with millstream.declare"


def load_script(path: Path, name: str, overrides: Sequence[str] = ()) -> LoadedSpec:
    """Run the file and return its one pipeline. Never raises: an exception in the file becomes a finding."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as read_error:
        return _broken(name, {}, "MS001", f"the file cannot be read: {read_error}")
    texts = {name: text}
    try:
        with _importable(path.parent):
            pipelines = _run(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may raise anything
        message = f"the file cannot be run: {type(error).__name__}: {error}"
        return _broken(name, texts, "MS010", message, _find_line(error, path))
    if len(pipelines) != 1:
        return _broken(name, texts, "MS010", f"the file contains {len(pipelines)} pipelines", why=_ONE)
    if isinstance(pipelines[0], Builder):
        return pipelines[0].load(name, texts, overrides)
    if overrides:
        reason = "a pipeline that is already built cannot be changed"
        return _broken(name, texts, "MS007", "--set needs the builder, not the built pipeline", why=reason)
    return LoadedSpec(pipelines[0], [], ValuePositions(name, YamlDocument(name, text)), texts)


def _find_line(error: BaseException, path: Path) -> int:
    """Return the last line of the file that an error comes from, or 1 if it comes from none."""
    # Python imports a relative path by its absolute one.
    file = str(path.absolute())
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == file), None) or 1


def _run(path: Path) -> list[Builder | Pipeline]:
    """Run a file and return its module-level pipelines."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python module")
    module: Any = importlib.util.module_from_spec(spec)
    # Register the module as an import would, so that functions of the file can be found by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return list(
        {
            id(value): value for value in vars(module).values() if isinstance(value, Builder | Pipeline)
        }.values()
    )


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Make the folder's modules importable, as they are when Python runs a file in it."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def _broken(
    name: str, texts: dict[str, str], code: str, message: str, line: int = 1, why: str = ""
) -> LoadedSpec:
    """Return the result for a file without a usable pipeline."""
    span = Span(name, line, 1, line + 1, 1)
    return LoadedSpec(
        None,
        [build_finding(code, message, span, why=why)],
        ValuePositions(name, YamlDocument(name, "")),
        texts,
    )
