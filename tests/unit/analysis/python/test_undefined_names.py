"""Names that a function reads and its file does not define."""

from __future__ import annotations

import pytest

from millstream.analysis.python.undefined_names import list_undefined_names


def undefined(text: str, function: str = "store", starred: frozenset[str] | None = None) -> list[str]:
    return [f"{one.name}:{one.line}" for one in list_undefined_names(text, function, starred)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def store(batch, number):\n    log.info(number)\n    send(batch)", ["log:2", "send:3"]),
        ("import logging\nlog = logging.getLogger()\ndef store(batch):\n    log.info(len(batch))", []),
        ("def store(batch):\n    helper(batch)\ndef helper(rows):\n    return [add(row) for row in rows]", ["add:4"]),
        ("def store(batch):\n    To().send(batch)\nclass To:\n    def send(self, rows):\n        url", ["url:5"]),
        ("class store:\n    size = 1\n    double = size * factor", ["factor:3"]),
        ("def other(batch):\n    return missing\ndef store(batch):\n    return batch", []),
        ("def store(batch):\n    global last\n    last = batch", []),
        ("def store(batch):\n    return lambda row: [row, batch, other]", ["other:2"]),
        ("def store(batch):\n    return __file__", []),
        ("from functions import *\ndef store(batch):\n    return sum(batch, first)", []),
        ("globals().update(a=1)\ndef store(batch):\n    return a", []),
        ("def store(batch) return", []),
    ],
)  # fmt: skip
def test_a_name_is_undefined_if_nothing_defines_it(text: str, names: list[str]) -> None:
    assert undefined(text) == names


def test_all_code_of_a_file_is_read_if_no_function_is_named() -> None:
    assert undefined("limit = least + 1\ndef store(batch):\n    return most", "") == ["least:1", "most:3"]


def test_annotations_are_read_unless_they_stay_texts() -> None:
    text = "def store(batch: Frame):\n    return batch"

    assert undefined(text, "") == ["Frame:1"]
    assert undefined(f"from __future__ import annotations\n{text}", "") == []


def test_the_names_of_a_known_import_of_all_are_defined() -> None:
    text = "from functions import *\ndef store(batch):\n    return batch.select(col, expr)"

    assert undefined(text, starred=frozenset({"col"})) == ["expr:3"]
