"""Which other reader loses files that a source deletes."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms508_taken_away
from millstream.pipeline.spec_file import load_text

SPEC = """name: shop
sources:
  orders:
    json: {path: data/orders, clean_source: delete}
    schema: {id: string}
  others:
    json: {path: PATH}
    schema: {id: string}
queries:
  copy: {from: orders, to: {console: {}}}
  again: {from: others, to: {console: {}}}
"""


@pytest.mark.parametrize(
    ("path", "messages"),
    [
        (
            "data/orders",
            [
                "source 'orders' deletes files once query 'copy' has read them, "
                "and query 'again' reads them through source 'others' too"
            ],
        ),
        ("data/others", []),
    ],
)
def test_another_source_over_the_same_folder_loses_files(path: str, messages: list[str]) -> None:
    loaded = load_text("pipeline.yml", SPEC.replace("PATH", path), Path("nowhere"), {})
    assert loaded.pipeline is not None, loaded.findings

    findings = ms508_taken_away.check(Facts(loaded.pipeline, loaded.places))

    assert [finding.message for finding in findings] == messages
