"""Edits change only their lines and no other byte."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.diagnostics.finding import Edit
from millstream.diagnostics.text_patch import apply_edits, format_diff

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)
TEXTS = st.builds(
    lambda lines, end, last: end.join(lines) + last,
    st.lists(LINE, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\n"]),
)
EDITS = st.builds(
    lambda line, drop, insert: Edit("a", line, tuple(insert), drop),
    st.integers(0, 9),
    st.integers(0, 3),
    st.lists(LINE, max_size=2),
)


def lines(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)


def test_lines_take_the_place_of_others() -> None:
    assert apply_edits("a\nb\nc\n", [Edit("f", 1, ("x", "y"), 1)])[0] == "a\nx\ny\nc\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_that_come_end_as_their_neighbours_do(end: str) -> None:
    assert apply_edits(f"a{end}b{end}", [Edit("f", 1, ("x",))])[0] == f"a{end}x{end}b{end}"


def test_a_last_line_without_an_end_stays_so() -> None:
    assert apply_edits("a\nb", [Edit("f", 2, ("x",))])[0] == "a\nb\nx"
    assert apply_edits("a\nb", [Edit("f", 1, ("x",), 1)])[0] == "a\nx"
    assert apply_edits("a\nb", [Edit("f", 1, (), 1)])[0] == "a"


def test_a_byte_order_mark_stays_in_front() -> None:
    assert apply_edits("\ufeffa\n", [Edit("f", 0, ("x",), 1)])[0] == "\ufeffx\n"


def test_of_two_edits_that_overlap_the_first_is_made() -> None:
    first, second = Edit("f", 0, ("x",), 2), Edit("f", 1, ("y",), 2)

    assert apply_edits("a\nb\nc\nd\n", [second, first]) == ("x\nc\nd\n", [first])


def test_two_insertions_at_one_place_are_not_made_together() -> None:
    first, second = Edit("f", 1, ("x",)), Edit("f", 1, ("y",))

    assert apply_edits("a\nb\n", [first, second]) == ("a\nx\nb\n", [first])


def test_neighbouring_edits_are_made_together() -> None:
    edits = [Edit("f", 0, ("x",), 1), Edit("f", 1, ("y",), 1)]

    assert apply_edits("a\nb\nc\n", edits) == ("x\ny\nc\n", edits)


def test_an_edit_beyond_the_text_or_without_effect_is_left_out() -> None:
    assert apply_edits("a\n", [Edit("f", 5, ("x",)), Edit("f", 0, ("a",), 1)]) == ("a\n", [])


@given(TEXTS, st.lists(EDITS, max_size=4))
def test_every_line_that_no_edit_names_is_as_it_was(text: str, edits: list[Edit]) -> None:
    after, result = apply_edits(text, edits)

    # What should come out, made the slow way: line by line, from the edits that were made.
    before = [line.rstrip("\r\n") for line in lines(text.removeprefix("\ufeff"))]
    expected: list[str] = []
    for number in range(len(before) + 1):
        expected += [line for edit in result if edit.line == number for line in edit.insert]
        missing = any(edit.line <= number < edit.line + edit.drop for edit in result)
        expected += before[number : number + 1] if not missing else []
    got = [line.rstrip("\r\n") for line in lines(after.removeprefix("\ufeff"))]
    # A last line that is empty and has no end is none.
    assert [*got, ""][: len(expected)] == expected
    assert result or after == text


@given(TEXTS)
def test_no_edit_changes_nothing(text: str) -> None:
    assert apply_edits(text, []) == (text, [])


def test_a_patch_tells_of_a_last_line_without_an_end() -> None:
    assert format_diff("p.yml", "a\nb", "a\nc") == (
        "--- a/p.yml\n+++ b/p.yml\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n"
        "+c\n\\ No newline at end of file\n"
    )
