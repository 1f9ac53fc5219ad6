"""Runs the transcripts of this folder: each `console` block, in one folder a page, must print what it shows.

A block `yaml pipeline.yml` (any language, then a path) makes that file. `$ millstream …` is a command, the
lines below it are what it prints to stdout and stderr, `[exit 1]` ends those of a command that fails.
`UPDATE_SNAPSHOTS=1 pytest tests/cli` rewrites the outputs.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from commands import call

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(r"^```(?P<word>\w+)(?: (?P<file>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ millstream ?(?P<args>[^\n]*)\n(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)


class Transcript(pytest.File):
    """One page of commands."""

    def collect(self) -> Any:
        yield Session.from_parent(self, name=self.path.stem)


class Session(pytest.Item):
    """All commands of a page, one after the other."""

    def runtest(self) -> None:
        folder = self.config._tmp_path_factory.mktemp(self.name)  # type: ignore[attr-defined]
        text = self.path.read_text(encoding="utf-8")

        def play(block: re.Match[str]) -> str:
            if block["file"]:
                _write(folder, block["file"], block["body"])
            if block["word"] != "console":
                return block[0]
            return f"```console\n{_COMMAND.sub(lambda command: _run(folder, command), block['body'])}```"

        got = _BLOCK.sub(play, text)
        if os.environ.get("UPDATE_SNAPSHOTS"):
            self.path.write_text(got, encoding="utf-8")
            return
        assert got.splitlines() == text.splitlines()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _write(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _run(folder: Path, command: re.Match[str]) -> str:
    """The command with what it prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("MILLSTREAM_")}
    result = call(folder, *shlex.split(command["args"]), env={**env, "NO_COLOR": "1", "COLUMNS": "100"})
    text = "\n".join(line.rstrip() for line in result.both.splitlines())
    code = f"[exit {result.returncode}]\n" if result.returncode else ""
    return f"$ millstream {command['args']}\n{text}{chr(10) if text else ''}{code}"


def pytest_collect_file(parent: Any, file_path: Path) -> Transcript | None:
    return Transcript.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None
