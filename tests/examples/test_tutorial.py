"""The tutorial does what it says, from its first command to its last, in the words that stand on its page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = str(Path(sys.executable).with_name("millstream"))
PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-pipeline.md"
BLOCK = re.compile(r"^( *)```(console|diff|yaml)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


class Learner:
    """Somebody who types what the page shows, and edits what it says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.typed: list[str] = []

    def do(self, kind: str, text: str) -> None:
        """One block of the page."""
        if kind == "diff":
            self.edit(self.folder / "pipeline.yml", text)
        elif kind == "yaml" and text.startswith("tests:"):
            (self.folder / "tests" / "windows.yml").write_text(text, encoding="utf-8")
        elif kind == "console":
            for line in text.splitlines():
                self.type(line.removeprefix("$ ").split())

    def type(self, words: list[str]) -> None:
        """One command line; it must end well."""
        self.typed.append(" ".join(words))
        match words:
            case ["cd", name]:
                self.folder /= name
            case ["rm", "-r", *names]:
                for name in names:
                    shutil.rmtree(self.folder / name)
            case ["millstream", *rest]:
                self.call(*rest)
            case _:
                raise AssertionError(f"the page types {words}")

    def call(self, *words: str) -> str:
        """`millstream …` in the folder. `reset` asks first, and the learner agrees."""
        result = subprocess.run(
            [COMMAND, *words],
            cwd=self.folder,
            env={**os.environ, "MILLSTREAM_ARCHIVE": "use"},
            input="y\n" if words[0] == "reset" else "",
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert result.returncode == 0, f"{words}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    @staticmethod
    def edit(file: Path, change: str) -> None:
        """Lines that go and lines that come, each pair once in the file."""
        text = file.read_text(encoding="utf-8")
        (missing,) = (line[1:] for line in change.splitlines() if line.startswith("-"))
        (received,) = (line[1:] for line in change.splitlines() if line.startswith("+"))
        assert text.count(missing) == 1
        file.write_text(text.replace(missing, received), encoding="utf-8")

    def starts(self) -> set[int]:
        """The seconds at which the windows of the table begin."""
        rows = self.call("show", "averages", "-n", "10000", "--json").splitlines()
        return {int(json.loads(row)["since"][17:19]) for row in rows}


def blocks() -> Iterator[tuple[str, str]]:
    for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        yield match[2], "".join(line.removeprefix(match[1]) for line in match[3].splitlines(keepends=True))


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_a_learner_changes_the_window_of_a_pipeline_that_runs(tmp_path: Path) -> None:
    learner = Learner(tmp_path)
    visited = []

    for kind, text in blocks():
        learner.do(kind, text)
        if "show averages" in text:
            visited.append(learner.starts())

    before, after = visited
    assert before
    assert before <= set(range(0, 60, 10))
    assert after
    assert after <= {0, 30}
    assert learner.typed[-1] == "millstream test tests/windows.yml"
