"""`millstream docs` finds the pages of the installed version."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from millstream.cli.main import run_command
from millstream.cli.setup import docs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "millstream"
    for page in ("index.html", "how-to/triggers.html", "rules/MS201.html", "how-to/index.html"):
        (package / "site" / page).parent.mkdir(parents=True, exist_ok=True)
        (package / "site" / page).write_text("")
    monkeypatch.setattr(docs.millstream, "__file__", str(package / "__init__.py"))
    return package / "site"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ((), "index.html"),
        (("triggers",), "how-to/triggers.html"),
        (("ms201",), "rules/MS201.html"),
        (("how-to",), "how-to/index.html"),
    ],
)
def test_a_page_is_found_by_its_name(
    site: Path, words: tuple[str, ...], page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["docs", "--path", *words]) == 0

    assert capsys.readouterr().out == f"{site / page}\n"


@pytest.mark.usefixtures("site")
def test_the_pages_are_served_until_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = []

    def interrupted(server: docs.ThreadingHTTPServer) -> None:
        assert server.server_address[0] == "127.0.0.1"
        raise KeyboardInterrupt

    monkeypatch.setattr(docs.ThreadingHTTPServer, "serve_forever", interrupted)
    monkeypatch.setattr(docs.webbrowser, "open", lambda address: opened.append(address) or True)

    assert run_command(["docs", "triggers"]) == 0

    (address,) = opened
    assert address.endswith("/how-to/triggers.html")
    assert capsys.readouterr().out == f"{address}\n"


def test_a_browser_in_the_terminal_gets_the_page(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "index.html").write_text("the start page")
    pages = []

    def browse(address: str) -> bool:
        """Return at the end of the browser, as a browser in a terminal does."""
        try:
            with urlopen(address, timeout=5) as page:
                pages.append(page.read())
        finally:
            signal.raise_signal(signal.SIGINT)
        return True

    monkeypatch.setattr(docs.webbrowser, "open", browse)
    # A shell starts a program in the background with SIGINT ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run_command(["docs"]) == 0
    finally:
        signal.signal(signal.SIGINT, former)

    assert pages == [b"the start page"]


@pytest.mark.usefixtures("site")
def test_a_page_that_is_misspelt_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["docs", "--path", "trigers"]) == 2

    assert "did you mean triggers?" in capsys.readouterr().err


def test_an_installation_without_the_site_says_where_the_pages_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs.millstream, "__file__", str(tmp_path / "a" / "b" / "__init__.py"))

    assert run_command(["docs", "--path"]) == 4

    assert "make site" in capsys.readouterr().err
