"""The command that gives the checkpoint of a renamed query its new name."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms409_renamed_query
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SPEC = """name: shop
defaults: {checkpoints: my state}
sources:
  clicks:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks}
    schema: {id: string}
queries:
  page_views: {from: clicks, to: {postgres: {url: "postgresql://localhost/shop", table: clicks}}}
"""
RECORD = {
    "query": "clicks", "query_id": "3f0c", "operators": [], "sources": [], "output_mode": "append",
    "pinned": {}, "unpinned": {}, "versions": {},
    "sinks": [
        {"key": "3f0c/postgres:clicks", "kind": "postgres", "target": "clicks", "database": "localhost/shop"}
    ],
}  # fmt: skip


def test_its_paths_hold_in_the_current_folder_and_may_have_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shop"
    old, new = folder / "my state" / "clicks", folder / "my state" / "page_views"
    (old / "_millstream").mkdir(parents=True)
    (old / "_millstream" / "record.json").write_text(json.dumps(RECORD))
    (old / "commits").mkdir()
    (old / "commits" / "7").write_text("v1\n{}")
    new.mkdir()
    loaded = load_text("pipeline.yml", SPEC, folder, {})
    assert loaded.pipeline is not None, loaded.findings

    fixes = []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for current in (tmp_path, elsewhere):
        monkeypatch.chdir(current)
        (finding,) = ms409_renamed_query.check(Facts(loaded.pipeline, loaded.places))
        fixes.append(shlex.split(finding.fix.partition("spooled: ")[2].partition(";")[0]))

    relative = "shop/my state"
    assert fixes == [
        ["rm", "-r", f"{relative}/page_views", "&&", "mv", f"{relative}/clicks", f"{relative}/page_views"],
        ["rm", "-r", str(new), "&&", "mv", str(old), str(new)],
    ]
