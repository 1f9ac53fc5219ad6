"""Compare folders by their paths."""

from __future__ import annotations

import posixpath


def normalize_path(path: str) -> str:
    """Return a path without `file:`, double slashes and dots."""
    if "://" in path and not path.startswith("file:"):
        return path.rstrip("/")
    return posixpath.normpath("/" + path.removeprefix("file:").lstrip("/") if path[:5] == "file:" else path)


def is_inside(inner: str, outer: str) -> bool:
    """Return whether one folder is inside another one. Both paths are normalized."""
    return inner != outer and inner.startswith(outer.rstrip("/") + "/")
