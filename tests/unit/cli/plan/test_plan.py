"""`millstream plan --fast` and `millstream checkpoint` on checkpoints that are made by hand."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from millstream.checkpoint import former_checkpoint, metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.former_checkpoint import FormerCheckpoint
from millstream.cli.main import cli
from millstream.diagnostics.failure import InvalidInput
from millstream.engine.sink_keys import sink_keys
from millstream.pipeline.spec_file import load_text
from millstream.plan.declared_query import declare_without_plan

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
sources:
  orders:
    json: in
    schema: {id: string, k: string, v: bigint, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
views:
  sums: SELECT k, sum(v) AS s FROM orders GROUP BY k
queries:
  sums: {output_mode: update, to: {delta: {path: lake/sums, merge_on: [k]}}}
"""

UNREPEATED = "drop_duplicates_within_watermark: [id]"
POSITIVE = "expect: {positive: {that: v > 0, otherwise: drop}}"
TOKYO = "spark.sql.session.timeZone: Asia/Tokyo"


class Folder:
    """A project with a spec, and checkpoints of its queries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spec = SPEC
        self.save()

    def save(self) -> None:
        (self.path / "pipeline.yml").write_text(self.spec)

    def change(self, before: str, now: str) -> None:
        assert before in self.spec
        self.spec = self.spec.replace(before, now)
        self.save()

    def checkpoint(self, query: str) -> Path:
        return self.path / ".millstream" / "checkpoints" / query

    def begin(self) -> None:
        """Give each query a checkpoint with batches 0 to 2, and the record that fits the spec."""
        pipeline = load_text("pipeline.yml", self.spec, self.path, {}).pipeline
        assert pipeline is not None
        for query in pipeline.queries:
            nothing = metadata.QueryMetadata(query, "one", (), (), (), "", {}, {}, {})
            record = declare_without_plan(pipeline, query, sink_keys(pipeline, query), nothing)
            folder = self.checkpoint(query)
            for log, text in (
                ("offsets", 'v1\n{"batchWatermarkMs":1000}\n{"logOffset":1}'),
                ("commits", "v1\n{}"),
            ):
                (folder / log).mkdir(parents=True)
                for batch in range(3):
                    (folder / log / str(batch)).write_text(text)
            (folder / "metadata").write_text('{"id":"one"}')
            (folder / "sources" / "0").mkdir(parents=True)
            for entry in range(3):
                (folder / "sources" / "0" / str(entry)).write_text(
                    'v1\n{"path":"f","timestamp":1,"batchId":0}'
                )
            metadata.write(folder, replace(record, started_after=-1))

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(cli, [words[0], *words[1:], "-f", str(self.path)], standalone_mode=False)

    def plan(self, *words: str) -> tuple[Any, dict[str, Any]]:
        """The exit code and the one query of `plan --fast --json`."""
        done = self.run("plan", "--fast", "--json", *words)
        assert done.exception is None, done.exception
        (query,) = json.loads(done.stdout)["queries"]
        return done.return_value, query


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A project that has not run."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def test_a_query_that_has_not_run_begins(folder: Folder) -> None:
    code, query = folder.plan()

    assert (code, query["begins"], query["verdict"], query["changes"]) == (0, True, "continues", [])


def test_a_query_that_has_not_changed_continues(folder: Folder) -> None:
    folder.begin()
    folder.change("SELECT k, sum(v)", "SELECT k,   sum(v)")

    code, query = folder.plan()

    assert (code, query["begins"], query["verdict"], query["changes"]) == (0, False, "continues", [])


@pytest.mark.parametrize(
    ("before", "now", "verdict", "kind"),
    [
        ("sum(v)", "max(v)", "cannot_tell", "view_changed"),
        ("output_mode: update", "output_mode: complete", "continues_with_note", "output_mode_changed"),
        ("lake/sums", "lake/totals", "continues_with_note", "sink_removed"),
        ("merge_on: [k]", "merge_on: [k, s]", "continues_with_note", "sink_key_changed"),
        ("json: in", "json: {path: in, max_files_per_trigger: 3}", "continues", "source_option_changed"),
        ("json: in", "json: other", "silently_wrong", "source_moved"),
        ("json: in", "csv: in", "start_afresh", "source_replaced"),
        ("10 minutes}", "1 hour}", "cannot_tell", "source_option_changed"),
        ("10 minutes}", f"10 minutes}}\n    {UNREPEATED}", "cannot_tell", "source_option_changed"),
        ("10 minutes}", f"10 minutes}}\n    {POSITIVE}", "cannot_tell", "source_option_changed"),
        ("k: string", "k: int", "cannot_tell", "source_option_changed"),
        (
            "json: in",
            "json: in\n    options: {timestampFormat: yyyy}",
            "cannot_tell",
            "source_option_changed",
        ),
        ("sums: SELECT", f"sums:\n    {POSITIVE}\n    sql: SELECT", "cannot_tell", "view_changed"),
        (f"\nspark: {{{TOKYO}}}", "", "cannot_tell", "setting_changed"),
    ],
)
def test_a_change_is_found_without_spark(
    folder: Folder, before: str, now: str, verdict: str, kind: str
) -> None:
    folder.change("name: shop", f"name: shop\nspark: {{{TOKYO}}}")
    folder.begin()
    folder.change(before, now)

    code, query = folder.plan()

    assert query["verdict"] == verdict
    assert kind in [change["kind"] for change in query["changes"]]
    assert code == (0 if verdict.startswith("continues") else 1)


def test_a_refused_query_is_an_annotation_with_its_line(folder: Folder) -> None:
    folder.begin()
    folder.change("json: in", "json: other")

    done = folder.run("plan", "--fast", "--format", "github")

    assert done.stdout.startswith("::error title=plan source-moved,file=pipeline.yml,line=4,")
    assert "query 'sums': silently wrong" in done.stdout


def test_the_text_fits_into_the_terminal(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.cli.plan.plan_output.terminal_width", lambda: 60)
    folder.begin()
    folder.change("json: in", "json: other")

    lines = folder.run("plan", "--fast").stdout.splitlines()

    assert max(map(len, (line for line in lines if "--accept" not in line))) <= 60


def test_the_suite_of_a_build_server_has_the_name_of_the_command(folder: Folder) -> None:
    folder.begin()
    unchanged = folder.run("plan", "--fast", "--format", "junit").stdout
    folder.change("json: in", "json: other")
    changed = folder.run("plan", "--fast", "--format", "junit").stdout

    assert '<testsuite name="millstream plan" tests="1" failures="0"' in unchanged
    assert '<testsuite name="millstream plan"' in changed


def test_the_text_says_how_to_start_all_the_same(folder: Folder) -> None:
    folder.begin()
    folder.change("json: in", "json: other")
    code = folder.plan()[1]["accept"]

    done = folder.run("plan", "--fast")

    assert f"millstream run --accept {code}" in done.stdout
    assert "sums: silently wrong" in done.stdout


def test_a_check_warns_of_what_the_checkpoint_cannot_follow(folder: Folder) -> None:
    folder.begin()
    assert "[plan]" not in folder.run("check", "--fast").stdout
    folder.change("output_mode: update", "output_mode: complete")
    folder.change(", merge_on: [k]", "")
    folder.change("json: in", "csv: in")

    done = folder.run("check", "--fast")

    assert done.return_value == 0
    assert "warning[plan]: query 'sums': start afresh: " in done.stdout, done.stdout


def test_a_checkpoint_whose_sinks_are_not_done_does_not_pass(folder: Folder) -> None:
    folder.begin()
    former = FormerCheckpoint("former", "one", 2, 0, "backfill", is_pending=True)
    former_checkpoint.write(folder.checkpoint("sums"), former)

    done = folder.run("plan", "--fast")

    assert done.return_value == 1
    assert "the rows in its sinks are yet to be replaced" in done.stdout
    assert done.stderr.endswith("next: millstream plan --apply\n")
    code, query = folder.plan()
    assert (code, query["unfinished"], query["changes"]) == (1, True, [])
    findings = folder.run("plan", "--fast", "--format", "github").stdout
    assert findings.startswith("::error")
    assert "millstream plan --apply --select sums" in findings


def test_two_specs_in_two_folders_are_compared(folder: Folder, tmp_path: Path) -> None:
    deployed = tmp_path / "deployed"
    deployed.mkdir()
    (deployed / "pipeline.yml").write_text(SPEC)

    same = folder.plan("--against", str(deployed / "pipeline.yml"))
    folder.change("output_mode: update", "output_mode: complete")
    other = folder.plan("--against", str(deployed / "pipeline.yml"))

    assert (same[0], same[1]["changes"]) == (0, [])
    assert [change["kind"] for change in other[1]["changes"]] == ["output_mode_changed"]


def test_a_query_that_the_other_spec_lacks_begins_and_a_removed_one_is_named(
    folder: Folder, tmp_path: Path
) -> None:
    deployed = tmp_path / "deployed" / "pipeline.yml"
    deployed.parent.mkdir()
    deployed.write_text(SPEC)
    folder.change("queries:\n  sums: {", "queries:\n  totals: {from: sums, ")

    done = folder.run("plan", "--fast", "--against", str(deployed))
    note = folder.run("plan", "--fast", "--against", str(deployed), "--format", "github").stdout
    code, query = folder.plan("--against", str(deployed))

    assert (code, query["query"], query["begins"]) == (0, "totals", True)
    assert done.stdout == f"totals: is not in {deployed}; it begins with the first batch\n"
    assert note.startswith("::notice ")
    assert f"query 'totals' is not in {deployed}; it begins with the first batch" in note
    assert f"only in {deployed}: sums; a renamed query begins without its checkpoint" in done.stderr


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        (TOKYO, "setting_changed"),
        ("spark.sql.ansi.enabled: false", "setting_changed"),
        ("spark.sql.shuffle.partitions: 999", "shuffle_partitions_changed"),
        ("spark.sql.streaming.multipleWatermarkPolicy: max", "pinned_setting_changed"),
    ],
)
def test_a_setting_that_only_the_changed_spec_has_is_compared_with_its_default(
    folder: Folder, tmp_path: Path, setting: str, kind: str
) -> None:
    deployed = tmp_path / "deployed" / "pipeline.yml"
    deployed.parent.mkdir()
    deployed.write_text(SPEC)
    folder.change("name: shop", f"name: shop\nspark: {{{setting}}}")

    _, query = folder.plan("--against", str(deployed))

    assert [change["kind"] for change in query["changes"]] == [kind]
    is_ignored = kind == "pinned_setting_changed"
    assert query["verdict"] == ("continues_with_note" if is_ignored else "cannot_tell")


def test_a_setting_that_is_written_with_its_default_has_not_changed(folder: Folder, tmp_path: Path) -> None:
    deployed = tmp_path / "deployed" / "pipeline.yml"
    deployed.parent.mkdir()
    deployed.write_text(SPEC)
    folder.change(
        "name: shop", "name: shop\nspark: {spark.sql.session.timeZone: UTC, spark.sql.ansi.enabled: true}"
    )

    assert folder.plan("--against", str(deployed))[1]["changes"] == []


def test_a_saved_record_is_compared(folder: Folder) -> None:
    folder.begin()
    saved = folder.checkpoint("sums") / "_millstream" / "record.json"
    folder.change("sum(v)", "max(v)")

    code, query = folder.plan("--against", str(saved))

    assert (code, query["verdict"]) == (1, "cannot_tell")


@pytest.mark.parametrize("text", ["{}", "[]", '"text"', "no JSON"])
def test_a_file_that_is_no_record_is_wrong_use(folder: Folder, text: str) -> None:
    (folder.path / "package.json").write_text(text)

    done = folder.run("plan", "--fast", "--against", "package.json")

    assert isinstance(done.exception, InvalidInput)
    assert done.exception.what == "package.json is not the record of a query"


def test_the_record_of_another_query_is_wrong_use(folder: Folder) -> None:
    folder.begin()
    saved = folder.checkpoint("sums") / "_millstream" / "record.json"
    folder.change("queries:\n  sums: {", "queries:\n  totals: {from: sums, ")

    done = folder.run("plan", "--fast", "--against", str(saved))

    assert isinstance(done.exception, InvalidInput)
    assert "is the record of query 'sums', which is not compared" in done.exception.what


def test_ten_queries_take_less_than_a_second_of_cpu(folder: Folder) -> None:
    line = "  sums: {output_mode: update, to: {delta: {path: lake/sums, merge_on: [k]}}}\n"
    more = "".join(
        f"  q{number}: {{from: sums, output_mode: update, to: {{delta: {{path: lake/q{number}, merge_on: [k]}}}}}}\n"
        for number in range(9)
    )
    folder.change(line, line + more)
    folder.begin()
    folder.run("plan", "--fast", "--json")

    began = time.process_time()
    done = folder.run("plan", "--fast", "--json")
    seconds = time.process_time() - began

    assert len(json.loads(done.stdout)["queries"]) == 10
    assert seconds < 1


def test_checkpoints_are_listed_and_shown(folder: Folder) -> None:
    folder.begin()

    listed = folder.run("checkpoint", "list", "--json")
    shown = folder.run("checkpoint", "show", "sums")

    (entry,) = json.loads(listed.stdout)["checkpoints"]
    assert (entry["query"], entry["planned"], entry["committed"]) == ("sums", 2, 2)
    assert "watermark: 1970-01-01T00:00:01Z" in shown.stdout


def test_damage_is_verified_with_exit_code_3_and_repaired(folder: Folder) -> None:
    folder.begin()
    (folder.checkpoint("sums") / "commits" / "2").write_text("")

    damaged = folder.run("checkpoint", "verify")
    folder.run("checkpoint", "repair")
    repaired = folder.run("checkpoint", "verify")

    assert damaged.return_value == 3
    assert "commits/2 is empty" in damaged.stdout
    assert repaired.return_value == 0


def test_a_renamed_query_keeps_its_place(folder: Folder) -> None:
    folder.begin()
    folder.change("  sums: {output_mode", "  totals: {from: sums, output_mode")

    done = folder.run("checkpoint", "rename", "sums", "totals")

    assert done.exception is None, done.exception
    assert Checkpoint(folder.checkpoint("totals")).committed() == 2
    assert not folder.checkpoint("sums").exists()


def test_a_copy_of_state_that_names_its_files_by_their_path_says_where_it_can_be_used(folder: Folder) -> None:
    folder.begin()
    plain = folder.run("checkpoint", "copy", "sums", str(folder.path / "plain"))
    file = folder.checkpoint("sums") / "state" / "0" / "_metadata" / "v2" / "0"
    file.parent.mkdir(parents=True)
    path = f"file:{folder.checkpoint('sums')}/state/0/_stateSchema/default/0"
    file.write_text("v2\n" + json.dumps({"stateStoreInfo": [{"stateSchemaFilePaths": [path]}]}))

    named = folder.run("checkpoint", "copy", "sums", str(folder.path / "named"))

    assert named.exception is None, named.exception
    assert "move the copy back to the folder of the original" in named.stderr
    assert plain.stderr == ""


def test_what_a_rewind_has_kept_is_pruned(folder: Folder) -> None:
    folder.begin()
    folder.run("checkpoint", "rewind", "sums", "--to-batch", "1")

    listed = folder.run("checkpoint", "prune")
    deleted = folder.run("checkpoint", "prune", "--yes")

    assert Checkpoint(folder.checkpoint("sums")).planned() == 1
    assert "would delete" in listed.stdout
    assert "sums: deleted" in deleted.stdout
    assert [path.name for path in folder.checkpoint("sums").parent.iterdir()] == ["sums"]
