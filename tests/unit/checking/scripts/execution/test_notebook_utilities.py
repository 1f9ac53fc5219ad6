"""The input fields of a notebook of Databricks in a check."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.execution.notebook_utilities import Widgets
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import Doubt


def test_a_field_has_its_default_and_what_else_widgets_have_is_not_known() -> None:
    widgets = Widgets(Doubt("dbutils", "only Databricks has it", None))
    widgets.text("place", "north")

    assert widgets.get("place") == "north"
    assert isinstance(widgets.getAll(), Absent)
    assert isinstance(widgets.getAll()["place"], Absent)
    with pytest.raises(AttributeError):
        widgets.__wrapped__  # noqa: B018 - Python asks for such names
