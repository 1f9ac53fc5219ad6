"""Print findings in the requested format."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, assert_never

from millstream import __version__
from millstream.diagnostics.formats import format_concise, format_github, format_json
from millstream.diagnostics.junit import format_findings as format_junit
from millstream.diagnostics.sarif import format_sarif
from millstream.diagnostics.text import format_text

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
    judged: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Format all findings as one text that ends with a newline, or is empty if there is nothing to report.

    `texts` contains the content of the files of findings, by the name in their spans; a finding in another file is
    shown without its line. `guarantees` are mappings with `query`, `sink`, `guarantee` and `reasons`. `pages` are the
    documentation pages of codes, for `sarif`. `judged` are the queries of scripts as `judged_to_json` returns them,
    for `json`, `sarif` and `junit`. `color` applies only to `text`.
    """
    match form:
        case "text":
            return format_text(findings, texts, guarantees, color=color)
        case "concise":
            return format_concise(findings)
        case "json":
            return format_json(findings, guarantees, judged)
        case "github":
            return format_github(findings)
        case "sarif":
            return format_sarif(findings, texts, pages, __version__, judged)
        case "junit":
            return format_junit(findings, list(texts), judged)
        case _:
            assert_never(form)
