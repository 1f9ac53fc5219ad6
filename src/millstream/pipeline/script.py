"""Load a pipeline that a Python file declares, by running that file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Span
from millstream.pipeline.api import Builder
from millstream.pipeline.document import Document
from millstream.pipeline.loaded import Loaded
from millstream.pipeline.model import Pipeline
from millstream.pipeline.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ONE = "a spec in Python has one pipeline at the top of its file, made with millstream.declare"


def load_script(path: Path, name: str, overrides: Sequence[str] = ()) -> Loaded:
    """Run the file and take its one pipeline. Never raises: what the file raises becomes a finding."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        return _broken(name, {}, "MS001", f"the file cannot be read: {failed}")
    texts = {name: text}
    try:
        with _importable(path.parent):
            found = _run(path)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - a user's file may raise anything
        last = [frame for frame in traceback.extract_tb(raised.__traceback__) if frame.filename == str(path)]
        line = (raised.lineno if isinstance(raised, SyntaxError) else last[-1].lineno if last else 1) or 1
        message = f"the file cannot be run: {type(raised).__name__}: {raised}"
        return _broken(name, texts, "MS010", message, line)
    if len(found) != 1:
        return _broken(name, texts, "MS010", f"the file holds {len(found)} pipelines", why=_ONE)
    if isinstance(found[0], Builder):
        return found[0].load(name, texts, overrides)
    if overrides:
        why = "a pipeline that is already built cannot be changed"
        return _broken(name, texts, "MS007", "--set needs the builder, not what it built", why=why)
    return Loaded(found[0], [], Places(name, Document(name, text)), texts)


def _run(path: Path) -> list[Builder | Pipeline]:
    """The pipelines at the top of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python module")
    module: Any = importlib.util.module_from_spec(spec)
    # As an import would: a function of the file can be found again by the module's name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return list(
        {
            id(value): value for value in vars(module).values() if isinstance(value, Builder | Pipeline)
        }.values()
    )


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """The folder's modules can be imported, as they can when Python runs a file of it."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def _broken(
    name: str, texts: dict[str, str], code: str, message: str, line: int = 1, why: str = ""
) -> Loaded:
    """A file that gives no pipeline."""
    span = Span(name, line, 1, line + 1, 1)
    return Loaded(None, [finding(code, message, span, why=why)], Places(name, Document(name, "")), texts)
