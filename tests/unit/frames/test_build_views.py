"""Errors of the functions of Python views: the view, the line of the project, and whether a server was away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.frames.build_views import _build_named_view
from millstream.pipeline import own_code
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
sources: {clicks: {rate: {}}}
views: {rates: {python: "transforms:rates"}}
queries: {rates: {to: {console: {}}}}
"""
FUNCTION = """
import runpy
from py4j.protocol import Py4JError

def rates(clicks):
    BODY
"""
NO_SERVER = "An error occurred while calling o1.load.\\n: java.net.ConnectException: refused\\n\\tat X"
NO_METHOD = (
    "An error occurred while calling o1.x. Trace:\\npy4j.Py4JException: Method x([]) is unknown\\n\\tat X"
)


def raise_error(folder: Path, body: str) -> MillstreamError:
    """The error of a view whose function has this body."""
    (folder / "transforms.py").write_text(FUNCTION.replace("BODY", body))
    pipeline = load_text("pipeline.yml", SPEC, folder, {}).pipeline
    assert pipeline is not None
    with pytest.raises(MillstreamError) as raised:
        _build_named_view(cast("Any", None), pipeline, "rates", {"clicks": cast("Any", None)})
    return raised.value


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("{}['a']", MillstreamError, "KeyError: 'a'"),
        ("raise ConnectionRefusedError('a')", NotReady, "ConnectionRefusedError: a"),
        ("raise TimeoutError('a')", NotReady, "TimeoutError: a"),
        (f'raise Py4JError("{NO_SERVER}")', NotReady, "Py4JError: java.net.ConnectException: refused"),
        (
            f'raise Py4JError("{NO_METHOD}")',
            MillstreamError,
            "Py4JError: py4j.Py4JException: Method x([]) is unknown",
        ),
        ("raise Py4JError('a')", MillstreamError, "Py4JError: a"),
    ],
)
def test_an_error_has_the_view_its_line_and_its_kind(
    body: str, kind: type[MillstreamError], message: str, tmp_path: Path
) -> None:
    error = raise_error(tmp_path, body)

    assert (type(error), error.what) == (kind, f"view 'rates': {message} (transforms.py:6)")


@pytest.mark.parametrize(
    "folder", [".venv/lib/python3.11/site-packages", ".pixi/envs/default/lib/python3.11"]
)
def test_the_line_is_one_of_the_project_and_not_of_its_virtual_environment(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_code, "STANDARD_LIBRARY", tmp_path / ".pixi/envs/default/lib/python3.11")
    library = tmp_path / folder / "library.py"
    library.parent.mkdir(parents=True)
    library.write_text("{}['a']\n")

    error = raise_error(tmp_path, f"runpy.run_path({str(library)!r})")

    assert error.what == "view 'rates': KeyError: 'a' (transforms.py:6)"
