"""Replace modules that are not installed, and find the script's own packages."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import SparkSession

from millstream.analysis.python.parsing import parse_python
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import Doubt
from millstream.checking.scripts.local_files import find_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import FrameType

# Files at the root of a project.
_ROOT_FILES = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
# The number of folders above a script that are searched if none of them looks like the root of a project.
_FEW = 2
# The module from which files for Databricks import what a notebook has by itself.
_RUNTIME = "databricks.sdk.runtime"
_MOST = 6
_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)'")
# How libraries speak of a name that another of their versions has.
_OF_ANOTHER_VERSION = re.compile(r"\b(?:removed|moved|renamed|deprecated|no longer)\b")


def list_project_folders(script: Path) -> list[Path]:
    """Return the folders above a script, innermost first, up to the root of its project."""
    folders = list(script.resolve().parents)[:_MOST]
    root = find_project_root(script)
    return folders[: (folders.index(root) if root else _FEW) + 1]


def find_project_root(script: Path) -> Path | None:
    """Return the nearest folder above a script that looks like the root of a project."""
    folders = list(script.resolve().parents)[:_MOST]
    return next((folder for folder in folders if any((folder / file).exists() for file in _ROOT_FILES)), None)


def find_repository(script: Path) -> Path | None:
    """Return the folder above a script that has a `.git`, else the root of its project."""
    folders = list(script.resolve().parents)[:_MOST]
    return next((folder for folder in folders if (folder / ".git").exists()), None) or find_project_root(
        script
    )


def find_package_root(module: str, script: Path) -> Path | None:
    """Return the folder of a script's project that holds a module of this name.

    It is a folder above the script, up to the root of the project; one that the script adds to `sys.path` by its
    place on another machine; or that of the only file of the project with this name, because a cluster gets such
    files by their names: `spark-submit --py-files`. A file that imports a library with its own name is not that
    library: `stores/minio.py` imports minio, and so do the scripts in `jobs/minio/`.
    """
    name = module.partition(".")[0]
    folders = list_project_folders(script)
    for folder in folders:
        for place in (folder, folder / "src", *_list_places_elsewhere(folder)):
            file = place / f"{name}.py"
            if (file.is_file() and not _uses_library(file, name)) or _is_package(place / name):
                return place
    root = find_project_root(script)
    files = [] if root is None or not name.isidentifier() else find_files(root, f"{name}.py")
    files = [file for file in files if not _uses_library(file, name)]
    return files[0].parent if len(files) == 1 else None


def _list_places_elsewhere(folder: Path) -> Iterator[Path]:
    """Yield the folders near `folder` that `sys.path` has by paths of another machine, or from another folder.

    `/Workspace/a/lib` may be `folder/a/lib` or `folder/lib`, and `../lib` is relative to the folder of a notebook.
    """
    for entry in map(str, sys.path):
        parts = Path(entry).parts[1:]
        if not entry.strip("./") or Path(entry).exists():
            continue
        if not entry.startswith("/"):
            yield folder / entry
        yield from (folder.joinpath(*parts[start:]) for start in range(1, len(parts)))


def _is_package(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    uses_library = any(_uses_library(file, folder.name) for file in folder.glob("*.py"))
    return not uses_library and any(folder.glob("**/*.py"))


def _uses_library(file: Path, name: str) -> bool:
    """Return whether a file imports a module of this name, or a part of it that its own folder does not have.

    Files of a package may import the package itself, and the names that its `__init__.py` sets.
    """
    tree = _parse(file)
    if tree is None:
        return False
    folder = file.parent if file.parent.name == name else file.parent / name
    package_file = _parse(folder / "__init__.py") if folder == file.parent else None
    own_names = set() if package_file is None else {*_list_set_names(ast.walk(package_file))}
    if {"*", "__getattr__"} & own_names:
        return False
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and package_file is not None
        ):
            modules += [f"{name}.{node.attr}"] if node.value.id == name and node.attr[:2] != "__" else []
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            is_whole = node.module == name
            modules += [f"{name}.{alias.name}" for alias in node.names] if is_whole else [node.module]
    for module in modules:
        package, _, rest = module.partition(".")
        first = rest.partition(".")[0]
        part = folder / first
        is_own = part.is_dir() or part.with_suffix(".py").is_file() if rest else package_file is not None
        if package == name and not is_own and first not in own_names:
            return True
    return False


def _parse(file: Path) -> ast.Module | None:
    """Return the code of a file, or None if it cannot be read."""
    try:
        return parse_python(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def find_other_version(error: BaseException, library: Sequence[FrameType], span: Any) -> Doubt | None:
    """Return the doubt about a name that the installed version of a module does not have, and another may have.

    `library` are the frames of libraries in which the error is raised, outermost first.
    """
    if isinstance(error, ModuleNotFoundError):
        return None
    if isinstance(error, ImportError) and error.name and (module := sys.modules.get(error.name)):
        if call_sites.is_user_file(getattr(module, "__file__", None) or "<"):
            return None
        if error.name.partition(".")[0] == "pyspark":
            why = f"PySpark {pyspark.__version__} does not have it"
            imported = _NOT_IMPORTED.match(str(error))
            what = f"'{imported[1]}'" if imported else "a name"
            return Doubt(f"{what} of {error.name}", why, span)
        why = f"the installed version of {error.name} does not have it: {error.msg}"
        return Doubt(f"a name of module {error.name}", why, span)
    name = str(library[-1].f_globals.get("__name__")).partition(".")[0] if library else ""
    if name in ("", "pyspark", "py4j", "millstream", *sys.stdlib_module_names):
        return None
    message = (str(error).splitlines() or [""])[0]
    is_about_name = isinstance(error, AttributeError | RuntimeError) and _OF_ANOTHER_VERSION.search(message)
    if not isinstance(error, ImportError) and not is_about_name:
        return None
    return Doubt(f"a name of module {name}", f"the installed version of {name} refuses it: {message}", span)


def list_caught_imports(file: str, name: str) -> list[tuple[str, int]]:
    """Return the modules, with their lines, whose absence a `try` of a file catches and so leaves a name unset."""
    try:
        tree = parse_python(call_sites.read_python(file))
    except (OSError, SyntaxError, ValueError):
        return []
    imports: dict[str, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try) or not node.handlers:
            continue
        inside = [part for each in node.body for part in ast.walk(each)]
        if not {name, "*"} & set(_list_set_names(inside)):
            continue
        for part in inside:
            if isinstance(part, ast.Import):
                imports |= {alias.name.partition(".")[0]: part.lineno for alias in part.names}
            elif isinstance(part, ast.ImportFrom) and part.module and not part.level:
                imports[part.module.partition(".")[0]] = part.lineno
    return [(module, line) for module, line in imports.items() if not _is_installed(module)]


def _list_set_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that statements assign, define or import."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]


def _is_installed(module: str) -> bool:
    return module in sys.modules or importlib.util.find_spec(module) is not None


class AbsentModuleFinder(MetaPathFinder, Loader):
    """Finds modules that are not installed, and all their submodules."""

    def __init__(self, modules: dict[str, Doubt]) -> None:
        self._modules = modules

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return a spec if the name is one of the missing modules or below it."""
        return ModuleSpec(name, self, is_package=True) if self._doubt(name) else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the placeholder."""
        doubt = self._doubt(spec.name)
        assert doubt is not None
        return _AbsentModule(spec.name, doubt)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing, because a placeholder has no code."""

    def _doubt(self, name: str) -> Doubt | None:
        return next(
            (doubt for module, doubt in self._modules.items() if f"{name}.".startswith(f"{module}.")), None
        )


class _AbsentModule(types.ModuleType):
    """A placeholder for a module that is not installed."""

    def __init__(self, name: str, doubt: Doubt) -> None:
        super().__init__(name)
        self.__dict__["_doubt"] = doubt
        # `from module import *` defines nothing.
        self.__dict__["__all__"] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == _RUNTIME and name == "spark":
            return SparkSession.getActiveSession()
        value = getattr(Absent(self.__dict__["_doubt"]), name)
        return value if isinstance(value, type) else Absent(self.__dict__["_doubt"])

    def __reduce__(self) -> tuple[Any, ...]:
        # A function for rows that uses the module is pickled with it.
        return Absent(self.__dict__["_doubt"]).__reduce__()


def forget_absent_modules() -> None:
    """Remove the placeholders from the loaded modules."""
    for name in [name for name, module in sys.modules.items() if isinstance(module, _AbsentModule)]:
        del sys.modules[name]
