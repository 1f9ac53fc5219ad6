"""Find a pipeline's Python functions by `module:name`, relative to the spec's folder."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from millstream.diagnostics.failure import MillstreamError
from millstream.pipeline.own_code import find_own_path
from millstream.spark.cluster.code_archive import ship_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.connectors.api.sink import Sink


def find_function(reference: str | Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """Return the function `module:name`. Raises `MillstreamError` with the file and what is missing.

    Workers of the session find what it imports from the spec's folder, also on a cluster and from another folder.
    """
    ship_project(folder)
    if not callable(reference):
        reference = _load_function(reference, folder)
    _register_hidden_modules(folder)
    return reference


def _load_function(reference: str, folder: Path) -> Callable[..., Any]:
    """Return the function of a file. Raises the exceptions of `find_function`."""
    module, _, name = reference.partition(":")
    file = folder / (module.replace(".", "/") + ".py")
    if not file.is_file():
        raise MillstreamError(
            f"there is no file {file} for '{reference}'", "create it, or name another module"
        )
    function = getattr(_import_module(module, file, folder), name, None)
    if not callable(function):
        raise MillstreamError(f"{file} has no function '{name}'", f"define 'def {name}(…)' in it")
    return function  # type: ignore[no-any-return]


def _register_hidden_modules(folder: Path) -> None:
    """Have functions of the project's modules pickled by value if workers would import others of their names.

    The working directory is the first folder in the path of a local worker, and the spec's folder the next one.
    """
    here = Path.cwd()
    if here == folder.resolve():
        return
    for name, module in tuple(sys.modules.items()):
        top = here / name.partition(".")[0]
        others = [path for path in (top.with_name(f"{top.name}.py"), top / "__init__.py") if path.is_file()]
        file = getattr(module, "__file__", None) if others and isinstance(module, ModuleType) else None
        if file is None or not find_own_path(Path(file), folder):
            continue
        path = Path(file).resolve()
        if path not in others and not path.is_relative_to(top):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def bind_functions(sink: Sink, folder: Path) -> Sink:
    """Return the sink with the user functions that it names. Raises the exceptions of `find_function`."""
    references = sink.functions()
    return (
        sink.bound({field: find_function(reference, folder) for field, reference in references.items()})
        if references
        else sink
    )


def locate_function(function: Callable[..., Any]) -> str:
    """Return the place of a function, such as `transforms.py:14`."""
    code = inspect.unwrap(function).__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _import_module(name: str, file: Path, folder: Path) -> ModuleType:
    """Import a file of the project under a unique name, so that two projects' `transforms` do not mix."""
    own_name = f"_millstream_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}_{name.replace('.', '_')}"
    stamp = file.stat().st_mtime_ns
    loaded = sys.modules.get(own_name)
    if loaded is not None and getattr(loaded, "_millstream_stamp", None) == stamp:
        return loaded
    spec = importlib.util.spec_from_file_location(own_name, file)
    if spec is None or spec.loader is None:
        raise MillstreamError(f"{file} cannot be imported", "it must be a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[own_name] = module
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The user's module may raise any exception. It is reported with its line.
        del sys.modules[own_name]
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise MillstreamError(
            f"{file} cannot be imported: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})",
            "correct the file",
        ) from error
    finally:
        sys.path.remove(str(folder))
    module._millstream_stamp = stamp  # type: ignore[attr-defined]
    # Workers cannot import a module next to a spec, so its functions are pickled by value.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module
