"""Views with state in a spec and in Python: what is read of them, and what does not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

import millstream as ms
from millstream.analysis.rule_runner import run_spec_rules
from millstream.pipeline.export.dump import resolve_spec
from millstream.pipeline.export.json_schema import json_schema
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import load_text
from millstream.pipeline.stateful import ROCKSDB, STORE

if TYPE_CHECKING:
    from pathlib import Path

PROCESSOR = """transform_with_state: "status:Status"
from: actions
group_by: [user]
schema: {user: string, status: string}
state: {last: {value: {status: string}}}"""
FUNCTION = """apply_in_pandas_with_state: "status:status"
from: actions
group_by: [user]
schema: {user: string, status: string}
state: {status: string}"""


def spec(view: str) -> str:
    text = "\n".join(f"      {line}" for line in view.splitlines())
    return f"""name: users
sources:
  actions:
    rate: {{}}
views:
  status:
{text}
queries:
  status: {{to: {{console: {{}}}}}}
"""


def test_a_processor_reads_what_it_names_and_needs_rocksdb(tmp_path: Path) -> None:
    loaded = load_text("pipeline.yml", spec(PROCESSOR + "\ninitial_state: actions"), tmp_path, {})

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert PipelineGraph.of(loaded.pipeline).reads["status"] == ("actions",)
    assert loaded.pipeline.spark[STORE] == ROCKSDB


def test_a_store_that_is_set_stays_and_a_function_needs_none(tmp_path: Path) -> None:
    pipeline = load_text(
        "pipeline.yml", f"spark: {{{STORE}: mine}}\n{spec(PROCESSOR)}", tmp_path, {}
    ).pipeline
    function = load_text("pipeline.yml", spec(FUNCTION), tmp_path, {}).pipeline

    assert pipeline is not None
    assert pipeline.spark[STORE] == "mine"
    assert function is not None
    assert STORE not in function.spark


@pytest.mark.parametrize("view", [PROCESSOR, FUNCTION])
def test_the_config_says_the_same_view_again(view: str, tmp_path: Path) -> None:
    pipeline = load_text("pipeline.yml", spec(view), tmp_path, {}).pipeline
    assert pipeline is not None

    second = load_text("pipeline.yml", yaml.safe_dump(resolve_spec(pipeline)), tmp_path, {}).pipeline

    assert second is not None
    assert second.views == pipeline.views


def test_python_declares_the_same_view(tmp_path: Path) -> None:
    users = ms.declare("users", folder=tmp_path)
    users.source("actions", ms.rate())
    users.view(
        "status",
        transform_with_state="status:Status",
        from_="actions",
        group_by=["user"],
        schema={"user": "string", "status": "string"},
        state={"last": {"value": {"status": "string"}}},
    )
    users.query("status", to=ms.console())

    loaded = load_text("pipeline.yml", spec(PROCESSOR), tmp_path, {}).pipeline
    assert loaded is not None
    assert users.build().views == loaded.views


@pytest.mark.parametrize(
    ("view", "code", "line", "words"),
    [
        (PROCESSOR + "\ntimeout: event_time", "MS003", 12, "write 'time_mode'"),
        (FUNCTION + "\ntime_mode: event_time", "MS003", 12, "write 'timeout'"),
        (FUNCTION + "\ninitial_state: actions", "MS003", 12, "remove 'initial_state'"),
        (PROCESSOR + "\noutput_mode: complete", "MS003", 12, "write 'append' or 'update'"),
        (PROCESSOR + "\nevent_time: at", "MS012", 12, "name one of user, status"),
        (PROCESSOR.replace("{value: {status: string}}", "string"), "MS003", 11, "write 'last: {value:"),
        (
            FUNCTION.replace("state: {status: string", "state: {status: {value: {a: int}}"),
            "MS003",
            11,
            "must be a type",
        ),
        (PROCESSOR.replace("}}", "}, ttl: 1 hour}"), "MS003", 11, "time_mode: processing_time"),
        (PROCESSOR.replace("value:", "thing:"), "MS002", 11, "thing"),
        (PROCESSOR.replace("{value: {status: string}}", "{ttl: 1 hour}"), "MS003", 11, "exactly one of"),
        (PROCESSOR.replace("from: actions\n", ""), "MS004", 6, "add 'from: name'"),
        (PROCESSOR.replace("group_by: [user]\n", ""), "MS004", 6, "add 'group_by: [column]'"),
        (FUNCTION.replace("state: {status: string}", ""), "MS004", 6, "add 'state:"),
        ("sql: SELECT * FROM actions\ngroup_by: [user]", "MS003", 8, "remove 'group_by'"),
        (PROCESSOR + "\nsql: SELECT 1", "MS003", 7, "not both"),
        (PROCESSOR.replace("from: actions", "from: action"), "MS102", 8, "write 'actions'"),
        (PROCESSOR, "MS108", 7, "create it in the folder of the spec"),
    ],
)
def test_what_does_not_go_together_is_told_at_its_place(
    view: str, code: str, line: int, words: str, tmp_path: Path
) -> None:
    loaded = load_text("pipeline.yml", spec(view), tmp_path, {})
    findings = [*loaded.findings, *(run_spec_rules(loaded) if loaded.pipeline else ())]

    messages = [finding for finding in findings if finding.code == code]

    assert len(messages) == 1, findings
    assert messages[0].span is not None
    assert messages[0].span.line == line
    assert words in f"{messages[0].message} {messages[0].fix}"


def test_an_editor_is_offered_each_key_with_its_words() -> None:
    view = json_schema()["$defs"]["View"]["anyOf"][1]["properties"]

    assert {"transform_with_state", "from", "group_by", "schema", "state", "time_mode"} <= set(view)
    assert all(item.get("description") for item in view.values())
