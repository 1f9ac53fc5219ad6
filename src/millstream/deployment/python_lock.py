"""List the Python packages that a pipeline needs, in the versions that are installed here."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OURS = "millstream"

_REQUIREMENT = re.compile(r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[(?P<extras>[^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass
class PythonLock:
    """Versions of packages by name, and those that were not installed from an index, each with its origin."""

    versions: dict[str, str] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)

    def format(self) -> str:
        """Return the lock as a file for `pip install --no-deps -r`."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        lines = [f"{name}=={version}" for name, version in sorted(self.versions.items())]
        return "\n".join(
            [
                f"# Written by 'millstream package' with Python {python}. Install with pip's --no-deps.",
                *lines,
                "",
            ]
        )


def list_extras() -> frozenset[str]:
    """Return the names of Millstream's extras."""
    return frozenset(metadata.metadata(OURS).get_all("Provides-Extra") or ())


def lock_packages(extras: Iterable[str], code: Mapping[str, bytes], requirements: str = "") -> PythonLock:
    """Return the versions of all packages that Millstream with these extras, the code and `requirements` need.

    `code` has Python files by path, whose imports are followed. `requirements` is the text of a requirements.txt.
    Requirements for other platforms are included only if their package is installed here. Raises NotReady for a
    package that is needed and not installed.
    """
    lock = PythonLock()
    pending = [
        f"{OURS}[{','.join(sorted(extras))}]",
        *_list_imported(code),
        *_read_requirements(requirements),
    ]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        requirement, _, marker = pending.pop().partition(";")
        match = _REQUIREMENT.match(requirement)
        if match is None:
            continue
        name = _normalise(match["name"])
        chosen = frozenset(_normalise(extra) for extra in (match["extras"] or "").split(",") if extra.strip())
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            # A marker that is not about an extra names another Python or another system.
            if _EXTRA.sub("", marker).strip():
                continue
            raise NotReady(
                f"the Python package {match['name']} is needed and not installed here",
                f"install it, so that its version can be locked: pip install '{requirement.strip()}'",
            ) from None
        if name != OURS:
            lock.versions[name] = package.version
            if (origin := package.read_text("direct_url.json")) is not None:
                lock.local[name] = origin
        pending += _list_requirements(package, chosen)
    return lock


def _list_requirements(package: metadata.Distribution, extras: frozenset[str]) -> Iterator[str]:
    """Yield what a package requires, with these extras of it."""
    for requirement in package.requires or ():
        extra = _EXTRA.search(requirement.partition(";")[2])
        if extra is None or _normalise(extra[1]) in extras:
            yield requirement


def _list_imported(code: Mapping[str, bytes]) -> list[str]:
    """Return the packages that modules import, except those that are modules of the project or of Python."""
    own = {path.removesuffix(".py").split("/")[0] for path in code}
    packages = metadata.packages_distributions()
    names = {name for text in code.values() for name in _list_modules(text)}
    return sorted({package for name in names - own for package in packages.get(name, ()) if package != OURS})


def _list_modules(text: bytes) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A module that Python cannot read is reported where it is imported.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _read_requirements(text: str) -> Iterator[str]:
    """Yield the requirements of a requirements.txt. Its options are not followed."""
    for line in text.splitlines():
        requirement = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if requirement and not requirement.startswith("-"):
            yield requirement


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
