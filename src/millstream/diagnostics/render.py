"""Findings in the form that was asked for."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, assert_never

from millstream import __version__
from millstream.diagnostics.junit import junit
from millstream.diagnostics.machine import as_json, concise, github
from millstream.diagnostics.sarif import sarif
from millstream.diagnostics.text import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.diagnostics.finding import Finding

Form = Literal["text", "concise", "json", "github", "sarif", "junit"]
NO_PAGES: Mapping[str, str] = MappingProxyType({})


def render(
    findings: Sequence[Finding],
    texts: Mapping[str, str],
    form: Form = "text",
    color: bool = False,
    guarantees: Sequence[Mapping[str, Any]] = (),
    pages: Mapping[str, str] = NO_PAGES,
) -> str:
    """All findings as one text that ends with a line end, or is empty when there is nothing to say.

    `texts` gives the content of the files that findings point into, by the name their spans use; a finding in
    a file that is not among them is shown without its line. `guarantees` are mappings with `query`, `sink`,
    `guarantee` and `reasons`. `pages` are the texts that explain codes, for `sarif`. Colour is for `text` only.
    """
    match form:
        case "text":
            return text(findings, texts, guarantees, color=color)
        case "concise":
            return concise(findings)
        case "json":
            return as_json(findings, guarantees)
        case "github":
            return github(findings)
        case "sarif":
            return sarif(findings, texts, pages, __version__)
        case "junit":
            return junit(findings, list(texts))
        case _:
            assert_never(form)
