"""Find a pipeline's Python functions: `module:name`, relative to the spec's folder."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from millstream.connectors.sink import Sink


def find(reference: str | Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """The function that `module:name` means. Raises `MillstreamError` naming the file and what is missing."""
    if callable(reference):
        return reference
    module, _, name = reference.partition(":")
    file = folder / (module.replace(".", "/") + ".py")
    if not file.is_file():
        raise MillstreamError(
            f"there is no file {file} for '{reference}'", "create it, or name another module"
        )
    found = getattr(_module(module, file, folder), name, None)
    if not callable(found):
        raise MillstreamError(f"{file} has no function '{name}'", f"define 'def {name}(…)' in it")
    return found  # type: ignore[no-any-return]


def bound(sink: Sink, folder: Path) -> Sink:
    """The sink with the user's functions that it names. Raises what `find` raises."""
    named = sink.functions()
    return sink.bound({field: find(one, folder) for field, one in named.items()}) if named else sink


def place(function: Callable[..., Any]) -> str:
    """Where a function stands: `transforms.py:14`."""
    code = inspect.unwrap(function).__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _module(name: str, file: Path, folder: Path) -> ModuleType:
    """Import a file of the project under a name of its own, so that two projects' `transforms` do not mix."""
    own = f"_millstream_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}_{name.replace('.', '_')}"
    stamp = file.stat().st_mtime_ns
    known = sys.modules.get(own)
    if known is not None and getattr(known, "_millstream_stamp", None) == stamp:
        return known
    spec = importlib.util.spec_from_file_location(own, file)
    if spec is None or spec.loader is None:
        raise MillstreamError(f"{file} cannot be imported", "it must be a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The user's module may raise anything at all; it is told with its line.
        del sys.modules[own]
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise MillstreamError(
            f"{file} cannot be imported: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})",
            "correct the file",
        ) from error
    finally:
        sys.path.remove(str(folder))
    module._millstream_stamp = stamp  # type: ignore[attr-defined]
    # Workers cannot import a module that lies beside a spec; its functions travel whole instead.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module
