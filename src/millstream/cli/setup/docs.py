"""`millstream docs`: open the documentation of the installed version."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click

import millstream
from millstream.cli.messages import print_hint
from millstream.diagnostics.failure import InvalidInput, NotReady

# Seconds that Ctrl-C leaves a browser to start.
_LAST_WAIT = 1.0


def find_site() -> Path:
    """Return the folder of the site: in the installed package, or where `make site` builds it in a checkout."""
    package = Path(millstream.__file__).parent
    for folder in (package / "site", package.parents[1] / "build" / "site"):
        if (folder / "index.html").is_file():
            return folder
    raise NotReady(
        "the documentation site is not part of this installation",
        "build it in a checkout with 'make site', or read docs/README.md there",
    )


def find_page(site: Path, name: str) -> Path:
    """Return the page with this name, such as `triggers`, `cli` or `ms201`.

    Raises `InvalidInput` if there is none.
    """
    pages = {page.stem.lower(): page for page in sorted(site.rglob("*.html")) if page.stem != "404"}
    # A folder's page has the name of the folder.
    pages |= {page.parent.name.lower(): page for page in site.rglob("index.html") if page.parent != site}
    page = pages.get(name.lower())
    if page is None:
        near = get_close_matches(name.lower(), pages, n=3)
        raise InvalidInput(
            f"there is no page '{name}'",
            f"did you mean {' or '.join(near)}?" if near else "open the start page: millstream docs",
        )
    return page


class _Pages(SimpleHTTPRequestHandler):
    """Serves the files of the site, without a log."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@click.command("docs", short_help="Open the documentation of this version.")
@click.argument("page", required=False)
@click.option("--path", is_flag=True, help="Only print the path of the page's file.")
@click.option(
    "--no-browser", is_flag=True, help="Serve the pages and print the address, but open no browser."
)
def command(page: str | None, *, path: bool, no_browser: bool) -> None:
    """Open the documentation in a browser: the start page, or PAGE, such as triggers, cli or MS201.

    The pages belong to the installed version and can be searched. The command serves the pages from this
    machine until Ctrl-C, and needs no internet access.
    """
    site = find_site()
    target = find_page(site, page) if page else site / "index.html"
    if path:
        click.echo(target)
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(site))) as server:
        address = f"http://127.0.0.1:{server.server_port}/{target.relative_to(site)}"
        click.echo(address)
        # A browser in a terminal returns only at its end, and needs the pages before that.
        browser = Thread(target=_open_browser, args=(address,), name="browser", daemon=True)
        if not no_browser:
            browser.start()
        print_hint("press Ctrl-C to stop")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
        if not no_browser:
            browser.join(_LAST_WAIT)


def _open_browser(address: str) -> None:
    if not webbrowser.open(address):
        print_hint("no browser could be opened; open the address yourself")
