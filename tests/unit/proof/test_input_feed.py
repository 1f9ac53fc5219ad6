"""The input of a proof, written to the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.spec_file import load_text
from millstream.proof.input_feed import InputFeed

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
sources: {orders: {csv: {path: in, sep: "-", options: {quote: ""}}, schema: {user: string}}}
queries: {orders: {to: {console: {}}}}
"""


def test_lines_of_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    pipeline = load_text("pipeline.yml", SPEC, tmp_path, {}).pipeline
    assert pipeline is not None
    feed = InputFeed(pipeline, pipeline, ["orders"], portions=1, rows=1, seed=1, recorded=None)

    with pytest.raises(InvalidInput, match=r"source 'orders': .* needs quotes"):
        feed.next()


def test_any_other_error_is_not_attributed_to_the_options_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = load_text("pipeline.yml", SPEC, tmp_path, {}).pipeline
    assert pipeline is not None
    feed = InputFeed(pipeline, pipeline, ["orders"], portions=1, rows=1, seed=1, recorded=None)
    error = ValueError("a defect")
    monkeypatch.setattr(type(pipeline.sources["orders"].source), "feed", Mock(side_effect=error))

    with pytest.raises(ValueError, match="a defect"):
        feed.next()
