"""The language server: documents come in, diagnostics, quick fixes and explanations go out."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from millstream import __version__
from millstream.analysis.rule_pages import read_page
from millstream.language_server.check_queue import CheckQueue, CheckRequest
from millstream.language_server.convert import to_code_action, to_diagnostic
from millstream.language_server.fast_check import DocumentKind, check_text, find_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.language_server.fast_check import Environment
    from millstream.language_server.spark_check import SparkCheck

_log = logging.getLogger(__name__)
_LINE_ENDING = re.compile(r"\r\n|\n|\r")


class MillstreamServer(LanguageServer):
    """Checks each open document: without Spark while it is edited, with Spark when it is saved.

    `environment` returns the variables of a spec in a folder. Without `spark_check`, Spark is never started.
    """

    def __init__(self, environment: Environment, spark_check: SparkCheck | None) -> None:
        super().__init__("millstream", __version__)
        self.environment = environment
        self.spark_check = spark_check
        self.queue = CheckQueue(self.run_check)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._published: dict[str, set[str]] = defaultdict(set)
        """The documents in which a document's check found something, by its URI."""
        self._diagnostics: dict[str, dict[str, list[types.Diagnostic]]] = defaultdict(dict)
        """The diagnostics of a document, by the document whose check found them."""

    def request_check(self, uri: str, *, is_saved: bool) -> None:
        """Check a document; returns at once."""
        self.queue.request(CheckRequest(uri, self.workspace.get_text_document(uri).source, is_saved))

    def run_check(self, request: CheckRequest) -> None:
        """Check a document in the thread of checks, and publish what was found."""
        path = to_path(request.uri)
        kind = find_kind(path, request.text)
        try:
            findings = check_text(path, request.text, self.environment)
            self._publish_later(request, findings)
            has_error = any(finding["severity"] == "error" for finding in findings)
            needs_spark = kind is DocumentKind.SCRIPT or (kind is DocumentKind.SPEC and not has_error)
            if request.is_saved and needs_spark:
                self._check_with_spark(path, request)
        except Exception as error:  # noqa: BLE001 - a check that fails must not end those after it
            _log.exception("the check of %s failed", path)
            self._say_later(f"{path.name} could not be checked: {type(error).__name__}")

    def _check_with_spark(self, path: Path, request: CheckRequest) -> None:
        """Publish what Spark says about a file, if the file has the text of the document before and afterwards."""
        if self.spark_check is None or not contains(path, request.text):
            return
        report = self.spark_check.check(path)
        if "error" in report:
            self._say_later(f"{path.name}: {report['error']}; {report['fix']}")
        elif contains(path, request.text):
            self._publish_later(request, report["findings"])

    def _publish_later(self, request: CheckRequest, findings: list[dict[str, Any]]) -> None:
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._publish, request, findings)

    def _say_later(self, message: str) -> None:
        if self.loop is not None:
            params = types.LogMessageParams(types.MessageType.Warning, message)
            self.loop.call_soon_threadsafe(self.window_log_message, params)

    def _publish(self, request: CheckRequest, findings: list[dict[str, Any]]) -> None:
        """Publish the findings of a document's check, unless its text has changed since."""
        document = self.workspace.text_documents.get(request.uri)
        if document is None or document.source != request.text:
            return
        by_uri: dict[str, list[Mapping[str, Any]]] = {request.uri: []}
        for finding in findings:
            uri = (
                request.uri
                if finding["file"] is None
                else from_fs_path(str(Path(finding["file"]).absolute()))
            )
            by_uri.setdefault(uri or request.uri, []).append(finding)
        for uri in self._published[request.uri] - set(by_uri):
            by_uri[uri] = []
        self._published[request.uri] = {uri for uri, findings_there in by_uri.items() if findings_there}
        for uri, findings_there in by_uri.items():
            lines = self.lines(uri)
            self._diagnostics[uri][request.uri] = [
                to_diagnostic(finding, lines) for finding in findings_there
            ]
            self._send(uri)

    def forget(self, uri: str) -> None:
        """Remove the diagnostics that a closed document's check found."""
        for other in self._published.pop(uri, set()) | {uri}:
            self._diagnostics[other].pop(uri, None)
            self._send(other)

    def diagnostics_of(self, uri: str) -> list[types.Diagnostic]:
        """Return the diagnostics of a document without repetition."""
        unique: dict[str, types.Diagnostic] = {}
        for diagnostics in self._diagnostics[uri].values():
            unique |= {repr((item.range, item.code, item.message)): item for item in diagnostics}
        return list(unique.values())

    def lines(self, uri: str) -> list[str]:
        """Return the lines of a document, open or not; the last one is empty if the text ends with a line ending."""
        return _LINE_ENDING.split(self.workspace.get_text_document(uri).source)

    def _send(self, uri: str) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=self.diagnostics_of(uri))
        )


def to_path(uri: str) -> Path:
    """Return the path of a document's URI."""
    return Path(to_fs_path(uri) or uri)


def contains(path: Path, text: str) -> bool:
    """Return whether a file has the text of a document, with whatever line endings."""
    try:
        content = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    return _LINE_ENDING.split(content) == _LINE_ENDING.split(text.removeprefix("\ufeff"))


def create_server(environment: Environment, spark_check: SparkCheck | None) -> MillstreamServer:
    """Create a server with its handlers; `start_io` runs it."""
    server = MillstreamServer(environment, spark_check)

    @server.feature(types.INITIALIZED)
    def _(_: types.InitializedParams) -> None:
        server.loop = asyncio.get_running_loop()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _(params: types.DidOpenTextDocumentParams) -> None:
        server.request_check(params.text_document.uri, is_saved=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: types.DidChangeTextDocumentParams) -> None:
        server.request_check(params.text_document.uri, is_saved=False)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def _(params: types.DidSaveTextDocumentParams) -> None:
        saved = to_path(params.text_document.uri)
        for uri, document in server.workspace.text_documents.items():
            # A spec reads other files of its folder: functions, SQL, schemas.
            is_spec = find_kind(to_path(uri), document.source) is DocumentKind.SPEC
            if uri == params.text_document.uri or (is_spec and saved.is_relative_to(to_path(uri).parent)):
                server.request_check(uri, is_saved=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def _(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        actions = []
        for item in _overlapping(server, uri, params.range):
            target = edited_uri(item) or uri
            actions.append(to_code_action(target, item, server.lines(target)))
        return [action for action in actions if action is not None]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def _(params: types.HoverParams) -> types.Hover | None:
        here = types.Range(params.position, params.position)
        codes = dict.fromkeys(str(item.code) for item in _overlapping(server, params.text_document.uri, here))
        pages = [page for code in codes if (page := read_page(code))]
        if not pages:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(pages)))

    @server.feature(types.SHUTDOWN)
    def _(_: None) -> None:
        server.queue.close()
        if server.spark_check is not None:
            server.spark_check.close()

    return server


def _overlapping(server: MillstreamServer, uri: str, place: types.Range) -> list[types.Diagnostic]:
    return [
        item
        for item in server.diagnostics_of(uri)
        if (item.range.start.line, item.range.start.character) <= (place.end.line, place.end.character)
        and (place.start.line, place.start.character) <= (item.range.end.line, item.range.end.character)
    ]


def edited_uri(diagnostic: types.Diagnostic) -> str | None:
    """Return the document that a quick fix changes, which may be another one than that of its finding."""
    data = diagnostic.data
    return from_fs_path(str(Path(data["edit"]["file"]).absolute())) if isinstance(data, dict) else None
