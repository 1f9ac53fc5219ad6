"""Each thing that Spark refuses has a cure, and the page of MS311 lists them all."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from millstream.analysis.rule_pages import find_pages
from millstream.checking.compat.error_hints import CURES, find_hint
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKER = "org/apache/spark/sql/catalyst/analysis/UnsupportedOperationChecker$.class"
HEAD = "| Spark refuses | do |\n| --- | --- |\n"


# How many bytes a constant of a Java class has after its tag; texts, of tag 1, say their own length.
SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
REFUSES = re.compile(r"not support|must be|cannot|Detected pattern")


def sentences() -> list[str]:
    """Every sentence with which Spark's own checker refuses, out of its compiled class."""
    (jar,) = Path(pyspark.__file__).parent.joinpath("jars").glob("spark-catalyst_*.jar")
    with zipfile.ZipFile(jar) as opened:
        actual = texts(opened.read(CHECKER))
    # \x01 stands where a name is put in.
    return sorted({text.replace("\x01", "Some") for text in actual if " " in text and REFUSES.search(text)})


def texts(java_class: bytes) -> Iterator[str]:
    """The text constants of a Java class."""
    count, place, index = int.from_bytes(java_class[8:10], "big"), 10, 1
    while index < count:
        tag, length = java_class[place], int.from_bytes(java_class[place + 1 : place + 3], "big")
        if tag == 1:
            yield java_class[place + 3 : place + 3 + length].decode("utf-8", "replace")
        place += 3 + length if tag == 1 else 1 + SIZES[tag]
        # Long numbers take two places in the table.
        index += 2 if tag in (5, 6) else 1


def test_the_sentences_of_the_checker_are_found() -> None:
    assert len(sentences()) >= 35


@pytest.mark.parametrize("sentence", sentences())
def test_every_sentence_of_sparks_checker_has_a_cure(sentence: str) -> None:
    assert find_hint(sentence)


def test_a_mode_that_spark_takes_is_proposed_beside_the_cure() -> None:
    text = "This output mode is not supported for streaming aggregations without watermark"

    assert find_hint(text, (OutputMode.UPDATE,)).endswith("; or run the query in output mode update")
    assert "mode" not in find_hint("Offset is not supported", (OutputMode.UPDATE,))


def test_what_is_not_known_has_no_cure() -> None:
    assert find_hint("something else") == ""


def test_the_page_lists_each_refusal_with_its_cure() -> None:
    table = "".join(f"| {cure.construct} | {_cell(cure.fix)} |\n" for cure in CURES)
    page = find_pages()["MS311"].read_text(encoding="utf-8")
    before, _, after = page.partition(HEAD)
    listed, _, last = after.partition("\n\n")

    if os.environ.get("UPDATE_SNAPSHOTS") and listed + "\n" != table:
        find_pages()["MS311"].write_text(f"{before}{HEAD}{table}\n{last.lstrip()}", encoding="utf-8")
        return
    assert listed + "\n" == table


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
