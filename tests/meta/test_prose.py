"""The check of the prose finds a retired word wherever a reader would see it, and nothing in code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import prose

if TYPE_CHECKING:
    from pathlib import Path

# A bad sentence in each kind of file, with its line and the word to be found.
BAD = {
    "docs/page.md": ("# Page\n\nThe batch is set aside.\n", 3, "set aside"),
    "src/module.py": ('"""Return the rows.\n\nNobody reads them.\n"""\n', 3, "Nobody"),
    "src/message.py": ('name = "x"\nerror = f"query {name}: mend the file {name!r}"\n', 2, "mend"),
    "page/words.ts": ("const text = `${count} rows; the run goes on`;\n", 1, "goes on"),
    "page/panel.tsx": ("return (\n  <p>See beside the plot</p>\n);\n", 2, "beside"),
    "examples/comment.yml": ("name: shop\nspark: {}  # Beside the table.\n", 2, "Beside"),
    "examples/sql.yml": ("views:\n  a: |\n    SELECT 1 -- nobody reads it\n", 3, "nobody"),
    "examples/cases.yml": ("tests:\n  a record is set aside:\n    steps: []\n", 2, "set aside"),
}

GOOD = {
    "docs/code.md": "Run `told` and see:\n\n```text\nthe batch is set aside\n```\n\n[a link](told.md)\n",
    "docs/words.md": "Amend a recommendation in the warehouse for everyone: gold, reset, the table is bold.\n",
    "src/code.py": '"""Return `told`."""\n\ntold = nobody = 1  # told beside the house\n',
    "page/code.ts": "const told = nobody + house;\n",
    "examples/values.yml": "told: {nobody: house}\nviews:\n  a: SELECT house FROM nobody\n",
    "docs/data.yml": "# nobody\n",
}


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sentence_is_found_at_its_line(tmp_path: Path, name: str) -> None:
    text, line, word = BAD[name]
    write(tmp_path, name, text)

    hits = prose.check_folder(tmp_path, name.partition("/")[0])

    assert [(hit.file, hit.line, hit.word) for hit in hits] == [(name, line, word)]


@pytest.mark.parametrize("name", GOOD)
def test_code_and_longer_words_are_not_found(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, GOOD[name])

    assert prose.check_folder(tmp_path, name.partition("/")[0]) == []


def test_a_phrase_is_found_across_a_line_end(tmp_path: Path) -> None:
    write(tmp_path, "docs/page.md", "The query goes\non.\n")

    assert [hit.word for hit in prose.check_folder(tmp_path, "docs")] == ["goes on"]


def test_a_folder_fails_above_its_number_and_not_at_it(tmp_path: Path) -> None:
    write(tmp_path, "docs/page.md", "The batch is set aside.\n")
    hits = prose.check_folder(tmp_path, "docs")

    assert prose.report_excess("docs", hits, 1) == []
    assert prose.report_excess("docs", hits, 0) == [
        "docs/page.md:1: 'set aside' is retired; write: spooled (batches), dead letter (records), moved away",
        "docs has 1 retired words, and may have 0",
    ]


def test_generated_pages_are_checked_where_they_come_from(tmp_path: Path) -> None:
    write(tmp_path, f"{prose.GENERATED}/page.md", "The batch is set aside.\n")

    assert prose.check_folder(tmp_path, "docs") == []


@pytest.mark.parametrize("word", prose.RETIRED)
def test_the_quick_look_misses_no_retired_word(word: str) -> None:
    # Each alternative of a word, with its optional parts.
    samples = [actual for actual in SAMPLES if re.fullmatch(word, actual, re.IGNORECASE)]

    assert samples
    assert [sample for sample in samples if prose.is_clean(f"Here: {sample}.")] == []


def test_every_package_is_in_the_table(root: Path) -> None:
    packages = {
        f"src/millstream/{file.parent.name}" for file in (root / "src/millstream").glob("*/__init__.py")
    }

    assert packages - set(prose.BUDGET) == set()


def test_the_docs_have_no_retired_word() -> None:
    assert [str(hit) for name in prose.DOCS for hit in prose.check_folder(prose.ROOT, name)] == []


SAMPLES = (
    *("a folder of its own", "of your own", "of our own", "of their own", "of his own"),
    *("afresh", "made anew", "begun anew", "begin anew", "begins anew"),
    *("batch answer", "the answer has", "the answer lacks", "in the answer", "beside", "for ever"),
    *("go on", "goes on", "going on", "went on", "gone on"),
    *("held against", "hold them against", "holds it against", "house", "how-manieth", "keeper", "keepers"),
    *(
        "letter box",
        "letterboxes",
        "batch's letters",
        "its letters",
        "their letters",
        "let go of",
        "lets go of",
    ),
    *("made up", "made-up", "mend", "mends", "mended", "mending"),
    *("nobody", "somebody", "whoever", "whomever"),
    *("so many rows", "so often times", "so many batches", "so many seconds", "so many differences"),
    *("set aside", "sets it aside", "setting them aside"),
    *("stand in", "stands in", "stands at", "stands there", "stood beside", "stands for", "stands still"),
    *(
        "batch comes again",
        "batches come again",
        "batch came again",
        "pass over",
        "passes it over",
        "passed over",
    ),
    *("take away", "takes it away", "taken away", "taking rows away", "the world", "told", "torn"),
    *("where it lies", "where they lie", "what lies", "things lie", "wish", "wishes"),
)
