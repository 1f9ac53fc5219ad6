"""Load a spec from its file, YAML or Python, into a model or a list of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.load.document import MOST_BYTES, YamlDocument
from millstream.pipeline.load.loader import LoadedSpec, display_path, load_text, sort_findings
from millstream.pipeline.load.places import ValuePositions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["LoadedSpec", "display_path", "load_spec", "load_text", "sort_findings"]


def load_spec(path: Path, env: Mapping[str, str], overrides: Sequence[str] = ()) -> LoadedSpec:
    """Load the spec at `path`: YAML, or Python that builds a pipeline. Never raises for its content."""
    name = str(display_path(path))
    if path.suffix == ".py":
        from millstream.pipeline.python_file import load_script  # noqa: PLC0415 - a script needs the whole Python API

        return load_script(path, name, overrides)
    try:
        # Read a little more than is allowed: enough to see that the file is too large.
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 4)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(name, f"the file is not UTF-8 text (byte {error.start})", "save it as UTF-8")
    except (OSError, ValueError) as os_error:
        reason = getattr(os_error, "strerror", None) or "it is not a path"
        return _unreadable(name, f"the file cannot be read: {reason}", "pass another file with -f")
    return load_text(name, text, path.parent, env, overrides)


def _unreadable(name: str, message: str, fix: str) -> LoadedSpec:
    """Return the result for a spec that is missing or not text."""
    places = ValuePositions(name, YamlDocument(name, ""))
    return LoadedSpec(None, [build_finding("MS001", message, Span.point(name), fix=fix)], places, {})
