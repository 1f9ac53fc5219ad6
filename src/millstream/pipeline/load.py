"""Load a spec from its file, YAML or Python: a model, or all that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Span
from millstream.pipeline.document import MOST_BYTES, Document
from millstream.pipeline.loaded import Loaded, in_file_order, load_text, shown
from millstream.pipeline.places import Places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Loaded", "in_file_order", "load", "load_text", "shown"]


def load(path: Path, env: Mapping[str, str], overrides: Sequence[str] = ()) -> Loaded:
    """Load the spec at `path`: YAML, or Python that builds a pipeline. Never raises for its content."""
    name = str(shown(path))
    if path.suffix == ".py":
        from millstream.pipeline.script import load_script  # noqa: PLC0415 - a script needs the whole Python API

        return load_script(path, name, overrides)
    try:
        # One byte more than is allowed is enough to see that it is too many.
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 4)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        return _unreadable(name, f"the file is not UTF-8 text (byte {wrong.start})", "save it as UTF-8")
    except (OSError, ValueError) as failed:
        said = getattr(failed, "strerror", None) or "it is no path"
        return _unreadable(name, f"the file cannot be read: {said}", "name another with -f")
    return load_text(name, text, path.parent, env, overrides)


def _unreadable(name: str, message: str, fix: str) -> Loaded:
    """A spec that is not there or no text."""
    places = Places(name, Document(name, ""))
    return Loaded(None, [finding("MS001", message, Span.point(name), fix=fix)], places, {})
