"""`dead_letters` in a spec: a path or a kind, and what is said of one that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from millstream.analysis.rule_runner import run_spec_rules
from millstream.pipeline.export.dump import resolve_spec
from millstream.pipeline.export.json_schema import json_schema
from millstream.pipeline.load.loader import load_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources: {ticks: {rate: {rows_per_second: 3}}}
queries: {ticks: {to: {console: {}}}}
"""
SECRET = "postgresql://me:hush@db:5432/shop"


def loaded(folder: Path, letters: object) -> Any:
    return load_text("pipeline.yml", SPEC + yaml.safe_dump({"dead_letters": letters}), folder, {})


def list_messages(folder: Path, letters: object) -> list[str]:
    return [finding.message for finding in loaded(folder, letters).findings]


@pytest.mark.parametrize("letters", ["lake/dead", {"delta": "lake/dead"}, {"delta": {"path": "lake/dead"}}])
def test_a_path_and_the_kind_that_it_means_are_the_same(tmp_path: Path, letters: object) -> None:
    box = loaded(tmp_path, letters).pipeline.letters

    assert (box.kind, box.target()) == ("delta", str(tmp_path / "lake" / "dead"))


def test_another_kind_is_named_with_its_settings(tmp_path: Path) -> None:
    letters = {"kafka": {"bootstrap_servers": "localhost:9092", "topic": "dead"}}

    assert loaded(tmp_path, letters).pipeline.letters.describe() == "kafka dead"


@pytest.mark.parametrize(
    ("letters", "wanted"),
    [
        ({"kafak": {"topic": "dead"}}, "there is no dead-letter store of kind 'kafak'"),
        ({"kafka": {"topic": "dead"}}, "'dead_letters.kafka' has no 'bootstrap_servers'"),
        ({"postgres": {"url": SECRET, "tabel": "x"}}, "'dead_letters.postgres' has no key 'tabel'"),
        ({}, "'dead_letters' does not name a kind of dead-letter store"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, letters: object, wanted: str) -> None:
    assert list_messages(tmp_path, letters) == [wanted]


def test_a_check_asks_the_kind_about_its_settings(tmp_path: Path) -> None:
    spec = loaded(tmp_path, {"kafka": {"bootstrap_servers": "localhost", "topic": "dead"}})

    assert [finding.message for finding in run_spec_rules(spec)] == ["'localhost' is not HOST:PORT"]


def test_the_resolved_spec_names_the_kind_and_hides_the_password(tmp_path: Path) -> None:
    dead_letters = resolve_spec(loaded(tmp_path, {"postgres": {"url": SECRET}}).pipeline)["dead_letters"]

    assert dead_letters["postgres"]["table"] == "dead_letters"
    assert "hush" not in str(dead_letters)


def test_an_editor_is_offered_a_path_and_each_kind() -> None:
    path, kinds = json_schema()["$defs"]["LettersEntry"]["anyOf"]

    assert path["type"] == "string"
    assert sorted(kinds["properties"]) == ["delta", "kafka", "postgres"]


def test_a_watermark_that_asks_for_late_rows_is_told_why_not(tmp_path: Path) -> None:
    source = {"kafka": {"bootstrap_servers": "b:9092", "subscribe": "t"}, "schema": {"at": "timestamp"}}
    source["watermark"] = {"event_time": "at", "delay_threshold": "1 minute", "late": "dead_letter"}  # type: ignore[assignment]
    spec = {"name": "shop", "sources": {"t": source}, "queries": {"t": {"to": {"console": {}}}}}

    findings = load_text("pipeline.yml", yaml.safe_dump(spec), tmp_path, {}).findings

    assert [finding.message for finding in findings] == [
        "late rows cannot become dead letters or be treated otherwise: they are dropped and counted"
    ]


def test_a_sink_that_cannot_tell_its_rows_apart_cannot_leave_some_out(tmp_path: Path) -> None:
    spec = SPEC.replace("{console: {}}", "{console: {}, on_error: dead_letter_rows}")

    findings = run_spec_rules(load_text("pipeline.yml", spec, tmp_path, {}))

    assert [finding.message for finding in findings] == ["console cannot report which rows it refuses"]
