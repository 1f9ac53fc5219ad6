"""Refuse retired words in the prose of the docs, the examples, the package's docstrings and messages, and the page.

`python tools/prose.py` prints each place with its replacement and ends with 1. Code is not prose: blocks and spans
of code in Markdown and docstrings are skipped, and so are comments, except in the YAML of the examples. `BUDGET` has
the number of retired words that a folder may still contain; more fails, and `--lower` writes smaller numbers into the
table after a rewrite.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent

# A retired word or phrase, as a regular expression, and the words to write instead.
RETIRED = {
    r"a \w+ of its own|of (?:your|our|their|his) own": "its own …, your own …",
    r"afresh|made anew|begun anew|begins? anew": "from scratch, recreated, again",
    r"batch answer|the answer (?:has|lacks)|in the answer": "batch result",
    r"beside": "next to, in addition to, with, while",
    r"for ever": "forever",
    r"(?:go|goes|going|went|gone) on": "continue, resume",
    r"(?:held|hold|holds) (?:\w+ )?against": "compared with",
    r"house": "repository, package, Millstream's own",
    r"how-manieth": "N-th",
    r"keepers?": "dead-letter writer, dead-letter store",
    r"letter ?box(?:es)?|(?:batch's|its|their) letters": "dead letters, dead-letter store",
    r"lets? go of": "release, drop, close",
    r"made[- ]up": "generated",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"(?:batch|batches) (?:come|comes|came|coming) again": "is replayed",
    r"(?:pass|passes|passed|passing) (?:\w+ )?over(?! the rows)": "skip, ignore",
    r"nobody|somebody|whoever|whomever": "no one, someone, or name the subject",
    r"so (?:many|often) (?:rows|times|batches|seconds|differences)": "N, the number of",
    r"set(?:s|ting)? (?:\w+ )?aside": "spooled (batches), dead letter (records), moved away",
    r"(?:stand|stands|stood) (?:in|at|there|beside|for)": "is, is stored, appears",
    r"(?:stand|stands|stood|standing) still": "does not move, is stopped, is suspended",
    r"tak(?:e|es|en|ing) (?:\w+ )?away": "delete, remove",
    r"the world": "external systems",
    r"told": "reported, recorded, said",
    r"torn": "corrupt, truncated",
    r"where (?:it|they) lies?|what lies|things lie": "where they are stored",
    r"wish(?:es)?": "options",
}
WORDS = re.compile(
    r"\b(?:" + "|".join(f"(?P<w{n}>{word})" for n, word in enumerate(RETIRED)).replace(" ", r"\s+") + r")\b",
    re.IGNORECASE,
)
# A part of each of them: a text with none of these has no retired word, and a search for these is fast.
ROUGH = (
    *("own", "afresh", "anew", "answer", "beside", "for ever", "against", "house", "manieth", "keeper"),
    *("go on", "goes on", "going on", "went on", "gone on", "letter", "let go", "lets go", "made up"),
    *("made-up", "mend", "nobody", "somebody", "whoever", "whomever", "so many", "so often", "aside"),
    *("stand", "stood", "away", "world", "told", "torn", " lie", "wish", " again", " over"),
)

# How many retired words each folder or file may still contain. Numbers only go down: a folder with 0 is finished.
# Finished: what a reader of the docs sees.
DOCS = {
    "README.md": 0,
    "CONTRIBUTING.md": 0,
    "CHANGELOG.md": 0,
    "docs": 0,
    "examples": 0,
}
# Later: the number of today.
LATER = {
    "page/src": 0,
    "src/millstream/analysis": 0,
    "src/millstream/backfill": 0,
    "src/millstream/checking": 0,
    "src/millstream/checkpoint": 0,
    "src/millstream/cli": 0,
    "src/millstream/connectors": 0,
    "src/millstream/dashboard": 0,
    "src/millstream/deployment": 0,
    "src/millstream/devstack": 0,
    "src/millstream/diagnostics": 0,
    "src/millstream/engine": 0,
    "src/millstream/frames": 0,
    "src/millstream/language_server": 0,
    "src/millstream/notebook": 0,
    "src/millstream/pipeline": 0,
    "src/millstream/plan": 0,
    "src/millstream/process": 0,
    "src/millstream/proof": 0,
    "src/millstream/spark": 0,
    "src/millstream/spec": 0,
    "src/millstream/state": 0,
    "src/millstream/testing": 0,
}
BUDGET = DOCS | LATER

# Written by tools/generate.py from docstrings and pages of src, which are checked themselves.
GENERATED = "docs/reference"

CODE = re.compile(
    r"^(?P<fence>[ \t]*(?:```+|~~~+)).*?^(?P=fence)[ \t]*$|(?P<tick>`+).+?(?P=tick)|\]\([^)\s]+\)",
    re.DOTALL | re.MULTILINE,
)
# A text of the page: a string with a space in it, or what is between two tags.
PAGE_TEXT = re.compile(
    r'"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)* (?:[^`\\]|\\.)*`|(?<=>)[^<>{}\n]* [^<>{}\n]*(?=<)'
)
HOLE = re.compile(r"\$\{[^}]*\}")
# A comment of YAML or of SQL inside it, or a key of several words: the name of a test.
YAML_TEXT = re.compile(r"(?:^|(?<=\s))(?:#|--) .*|^ +[^\s#{}\[\]:-][^{}\[\]:]* [^{}\[\]:]*:$", re.MULTILINE)


@dataclass(frozen=True)
class Hit:
    """A retired word: its file, its line, counted from 1, the word as written, and the replacement."""

    file: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        """One line for the terminal, in the form of compilers."""
        return f"{self.file}:{self.line}: '{self.word}' is retired; write: {self.instead}"


def blank_out(text: str, pattern: re.Pattern[str]) -> str:
    """Replace matches with spaces, so that lines and columns stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def is_clean(text: str) -> bool:
    """Return whether a quick look shows that a text has no retired word."""
    words = " ".join(text.lower().split())
    return not any(part in words for part in ROUGH)


def find_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the word and the replacement of each retired word in a text."""
    if is_clean(text):
        return
    replacements = list(RETIRED.values())
    for match in WORDS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, " ".join(match.group().split()), replacements[int((match.lastgroup or "w0")[1:])]


def check_markdown(text: str) -> Iterator[tuple[int, str, str]]:
    """Check the text of a page without its code and its link targets."""
    yield from find_words(blank_out(text, CODE))


def check_python(text: str) -> Iterator[tuple[int, str, str]]:
    """Check the docstrings and the other strings of a module, and the texts between the fields of f-strings."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for line, word, instead in find_words(blank_out(node.value, CODE)):
                # A string that continues on the next line of the source has no line break in it.
                last = node.end_lineno or node.lineno
                yield min(node.lineno + line - 1, last), word, instead


def check_page_source(text: str) -> Iterator[tuple[int, str, str]]:
    """Check the strings and the texts between tags of a source of the live page."""
    for match in PAGE_TEXT.finditer(text):
        before = text.count("\n", 0, match.start())
        for line, word, instead in find_words(blank_out(match.group(), HOLE)):
            yield before + line, word, instead


def check_yaml(text: str) -> Iterator[tuple[int, str, str]]:
    """Check the comments of a spec or of its tests, and the names of the tests."""
    for match in YAML_TEXT.finditer(text):
        before = text.count("\n", 0, match.start())
        for line, word, instead in find_words(blank_out(match.group(), CODE)):
            yield before + line, word, instead


KINDS = {
    ".md": check_markdown,
    ".py": check_python,
    ".ts": check_page_source,
    ".tsx": check_page_source,
    ".yml": check_yaml,
}


def list_files(root: Path, name: str) -> Iterator[Path]:
    """Yield the files of a folder, or the one file, that have prose and are not generated."""
    start = root / name
    candidates = [start] if start.is_file() else sorted(start.rglob("*"))
    for file in candidates:
        generated = file.is_relative_to(root / GENERATED) or "static" in file.parts
        # Other YAML is settings and data.
        is_example = start.is_relative_to(root / "examples")
        if file.suffix in KINDS and not generated and (is_example or file.suffix != ".yml"):
            yield file


def check_folder(root: Path, name: str) -> list[Hit]:
    """Return the retired words in a folder or file of the table."""
    hits = []
    for file in list_files(root, name):
        text = file.read_text(encoding="utf-8")
        if not is_clean(text) and WORDS.search(text):
            path = file.relative_to(root).as_posix()
            hits += [Hit(path, *hit) for hit in KINDS[file.suffix](text)]
    return hits


def report_excess(name: str, hits: list[Hit], allowed: int) -> list[str]:
    """Return the lines to print if a folder has more retired words than it may have."""
    if len(hits) <= allowed:
        return []
    lines = [str(hit) for hit in hits]
    return [*lines, f"{name} has {len(hits)} retired words, and may have {allowed}"]


def lower_budget(counts: dict[str, int]) -> None:
    """Write the counts that are smaller than the table's into this file."""
    file = Path(__file__)
    text = file.read_text(encoding="utf-8")
    for name, count in counts.items():
        text = text.replace(f'    "{name}": {BUDGET[name]},', f'    "{name}": {min(count, BUDGET[name])},')
    file.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Check every folder of the table; 0 if each is within its number, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lower", action="store_true", help="write smaller counts into the table")
    parser.add_argument("--list", metavar="FOLDER", help="print every retired word of a folder or file")
    options = parser.parse_args(arguments)
    if options.list:
        print(*check_folder(ROOT, options.list.rstrip("/")), sep="\n")
        return 0
    hits = {name: check_folder(ROOT, name) for name in BUDGET}
    if options.lower:
        lower_budget({name: len(actual) for name, actual in hits.items()})
    lines = [line for name, actual in hits.items() for line in report_excess(name, actual, BUDGET[name])]
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
