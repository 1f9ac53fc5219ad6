"""The session in which a notebook shows a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.values import bucket_options
from millstream.notebook import display
from millstream.spark import settings

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
sources:
  orders: {delta: {path: "s3a://lake/orders"}}
queries:
  orders: {to: {console: {}}}
"""


class SessionRequested(Exception):
    """Raised in place of a start of Spark."""


def test_a_table_on_s3_is_shown_in_a_session_that_has_the_client_of_s3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    monkeypatch.setattr(bucket_options, "_settings", {})
    requested: dict[str, object] = {}

    def open_session(_: str, conf: dict[str, object], **__: object) -> None:
        requested.update(conf)
        raise SessionRequested

    monkeypatch.setattr(display, "open_session", open_session)

    with pytest.raises(SessionRequested):
        display.display(tmp_path)

    assert settings.uses_s3(requested)
