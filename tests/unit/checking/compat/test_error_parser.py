"""The sentence that a finding takes from an error."""

from __future__ import annotations

import pytest

from millstream.checking.compat.error_parser import split_message

JAVA = "java.lang.AssertionError: assertion failed: no rows."
FRAMES = (
    "\n\tat scala.Predef$.assert(Predef.scala:279)\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"An error occurred while calling o726.fit.\n: {JAVA}{FRAMES}", JAVA),
        (f"training failed: {JAVA}{FRAMES}", f"training failed: {JAVA}"),
        (f"no model\n\nJVM stacktrace:\n{JAVA}{FRAMES}", "no model"),
        ("look at the (first) line\nand at the second", "look at the (first) line\nand at the second"),
    ],
)
def test_a_sentence_has_no_stack_trace_of_java(text: str, sentence: str) -> None:
    assert split_message(RuntimeError(text)) == (f"RuntimeError: {sentence}", "")
