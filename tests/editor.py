"""An editor for tests: a real client of the Language Server Protocol, with the diagnostics that it got."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.lsp.client import LanguageClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

SECONDS = 60.0


class Editor:
    """An editor with one client: the newest diagnostics of each document, by URI."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.messages: list[str] = []
        self._published = asyncio.Condition()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def _(params: types.PublishDiagnosticsParams) -> None:
            async with self._published:
                self.diagnostics[params.uri] = list(params.diagnostics)
                self._published.notify_all()

        @client.feature(types.WINDOW_LOG_MESSAGE)
        async def _(params: types.LogMessageParams) -> None:
            self.messages.append(params.message)

    def open(self, name: str, text: str, *, saved: bool = True) -> str:
        """Open a document with this text, and return its URI."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if saved:
            path.write_text(text)
        document = types.TextDocumentItem(path.as_uri(), path.suffix[1:], 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return path.as_uri()

    def change(self, uri: str, text: str, version: int = 2) -> None:
        """Replace the text of a document, without saving it."""
        document = types.VersionedTextDocumentIdentifier(version, uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def until(self, uri: str, codes: list[str]) -> list[types.Diagnostic]:
        """Wait until exactly these codes are shown in a document."""
        async with self._published, asyncio.timeout(SECONDS):
            await self._published.wait_for(
                lambda: (
                    sorted(str(item.code) for item in self.diagnostics.get(uri, [])) == codes
                    and uri in self.diagnostics
                )
            )
        return self.diagnostics[uri]

    async def until_some(self, uri: str) -> list[types.Diagnostic]:
        """Wait until anything is shown in a document."""
        async with self._published, asyncio.timeout(SECONDS):
            await self._published.wait_for(lambda: bool(self.diagnostics.get(uri)))
        return self.diagnostics[uri]


def edit(folder: Path, act: Callable[[Editor], Awaitable[None]], *options: str) -> None:
    """Start a server in a folder, let an editor act, and end both; the server must end by itself."""

    async def session() -> None:
        client = LanguageClient("editor", "1")
        editor = Editor(client, folder)
        await client.start_io(sys.executable, "-m", "millstream", "lsp", *options, cwd=str(folder))
        await client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=folder.as_uri())
        )
        client.initialized(types.InitializedParams())
        await act(editor)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(session())
