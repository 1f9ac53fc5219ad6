"""An editor gets findings, quick fixes and pages from the language server; a real client drives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types

from editor import Editor, edit
from millstream.language_server.fast_check import check_text

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SPEC = """\
name: shop
sources:
  orders: {rate: {}, watermark: {event_time: timestamp, delay_threshold: 10 seconds}}
views:
  sums: SELECT window(timestamp, '1 minute') AS w, count(*) AS n FROM orders GROUP BY 1
queries:
  sums: {output_mode: append, trigger: 5 seconds, to: {console: }}
"""


def test_findings_follow_the_text_that_is_edited(tmp_path: Path) -> None:
    # A character outside the basic plane is two units of UTF-16, in which an editor counts.
    wrong = SPEC.replace("count(*) AS n FROM orders", "'\U0001f600' AS face FROM order")
    line = wrong.splitlines()[4]
    start = line.index("order GROUP") + 1

    async def act(editor: Editor) -> None:
        uri = editor.open("pipeline.yml", SPEC)
        await editor.until(uri, [])

        editor.change(uri, wrong)
        unknown = (await editor.until(uri, ["MS102"]))[-1]

        assert unknown.code == "MS102"
        assert unknown.severity is types.DiagnosticSeverity.Error
        assert unknown.range == types.Range(types.Position(4, start), types.Position(4, start + len("order")))
        assert "fix: " in unknown.message

        editor.change(uri, SPEC, version=3)
        await editor.until(uri, [])

    edit(tmp_path, act, "--no-spark")


def test_a_fix_is_offered_as_an_edit_and_a_page_is_shown_on_hover(tmp_path: Path) -> None:
    wrong = SPEC.replace("trigger: 5 seconds", "triger: 5 seconds")

    async def act(editor: Editor) -> None:
        uri = editor.open("pipeline.yml", wrong)
        diagnostics = await editor.until(uri, ["MS002"])

        actions = await editor.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri),
                diagnostics[0].range,
                types.CodeActionContext(diagnostics),
            )
        )
        hover = await editor.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), diagnostics[0].range.start)
        )

        (action,) = actions or ()
        assert isinstance(action, types.CodeAction)
        assert action.title == "write 'trigger' (may change results)"
        assert action.edit is not None
        assert action.edit.changes is not None
        (change,) = action.edit.changes[uri]
        assert change.range == types.Range(types.Position(6, 0), types.Position(7, 0))
        assert change.new_text == SPEC.splitlines(keepends=True)[6]
        assert isinstance(hover and hover.contents, types.MarkupContent)
        assert hover is not None
        assert "MS002" in str(hover.contents)

    edit(tmp_path, act, "--no-spark")


SECRETS = """\
name: shop
sources:
  visits: {kafka: {bootstrap_servers: "b:9092", subscrib: visits}, format: json, schema: {session_token: string}}
queries:
  visits: {trigger: 5 seconds, to: {postgres: {url: "postgresql://etl:hunter2@db/shop", tabel: visits}}}
"""


def test_an_edit_of_a_line_with_a_secret_changes_nothing_else_of_it(tmp_path: Path) -> None:
    findings = check_text(tmp_path / "pipeline.yml", SECRETS, lambda _: {})

    edits = {finding["edit"]["line"] + 1: finding["edit"] for finding in findings if finding["edit"]}
    lines = ["", *SECRETS.splitlines()]
    assert edits[3]["insert"] == [lines[3].replace("subscrib:", "subscribe:")]
    assert edits[5]["insert"] == [lines[5].replace("tabel", "table")]
    assert "hunter2" not in "".join(finding["message"] + finding["fix"] for finding in findings)


def test_test_files_are_checked_and_other_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)

    async def act(editor: Editor) -> None:
        uri = editor.open("tests/sums.yml", "tests:\n  counts:\n    quary: sums\n    steps: []\n")
        other = editor.open("compose.yml", "services: {web: {image: nginx}}\n")

        assert await editor.until(uri, ["MS002", "MS003"])
        await editor.until(other, [])

    edit(tmp_path, act, "--no-spark")


def test_a_closed_document_has_no_findings(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open("pipeline.yml", SPEC.replace("FROM orders", "FROM order"))
        await editor.until(uri, ["MS102"])

        editor.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        )

        await editor.until(uri, [])

    edit(tmp_path, act, "--no-spark")


def test_unreadable_text_is_a_finding_and_the_server_lives(tmp_path: Path) -> None:
    texts = [
        "sources: [",
        "sources: \x00",
        "queries: {a: {to: {nowhere: }}}",
        "sources:\n\t- x",
        "queries: 7",
    ]

    async def act(editor: Editor) -> None:
        uri = editor.open("pipeline.yml", SPEC)
        await editor.until(uri, [])
        for number, text in enumerate(texts):
            editor.change(uri, f"{text}\n", version=10 + 2 * number)
            await editor.until_some(uri)
            editor.change(uri, SPEC, version=11 + 2 * number)
            await editor.until(uri, [])

    edit(tmp_path, act, "--no-spark")
