"""Values that are written as YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.pipeline.load.document import parse_yaml
from millstream.pipeline.load.yaml_scalars import dump_value


@pytest.mark.parametrize(
    "text", ["\x7f", "\x85", "a\x9fb", "\u2028", "\ufeff", "\uffff", "😀\0", "no", '"\\']
)
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    assert parse_yaml("a.yml", dump_value({"a": [text]})).data == {"a": [text]}


@given(st.text())
def test_any_text_is_read_as_it_was_written(text: str) -> None:
    assert parse_yaml("a.yml", dump_value(text)).data == text
