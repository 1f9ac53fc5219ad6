"""The page about deployments: its story, from the first window to the last comparison, is what the commands say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from millstream.cli.main import cli

if TYPE_CHECKING:
    from spark.backfill.conftest import Shop

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "deploy-a-change.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(SPEC,) = (text for kind, text in BLOCKS if kind == "yaml")
(ROWS,) = (text for kind, text in BLOCKS if kind == "json")
SHOWN = [
    (shlex.split(line), output)
    for kind, text in BLOCKS
    if kind == "text"
    for line, output in re.findall(r"^\$ millstream (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]


@pytest.mark.usefixtures("interpreted", "small_batches", "commands")
def test_a_longer_window_is_deployed_as_the_page_shows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.folder)
    for file in (shop.folder / "in").iterdir():
        file.unlink()
    shop.add_lines(*map(json.loads, ROWS.splitlines()))
    shop.spec = SPEC
    shop.stream()
    shop.spec = SPEC.replace("15 minutes", "1 hour")
    (shop.folder / "pipeline.yml").write_text(shop.spec)

    printed = []
    for words, _ in SHOWN:
        if words[0] == "run":
            shop.stream()
            continue
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        assert result.exception is None
        printed.append((words, result.stdout))

    assert printed == [(words, output) for words, output in SHOWN if words[0] != "run"]
    assert [words[0] for words, _ in SHOWN] == ["plan", "plan", "run", "backfill"]
