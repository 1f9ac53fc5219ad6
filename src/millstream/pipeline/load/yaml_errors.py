"""Explain errors of the YAML parser with a clear message and a fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.spec_codes import build_finding

if TYPE_CHECKING:
    import yaml

    from millstream.diagnostics.finding import Finding
    from millstream.diagnostics.lines import TextLines

# libyaml's message, our message, and the fix.
_WORDS = (
    (
        "mapping values are not allowed",
        "a ':' cannot start a value here",
        "put quotes around a value that contains ': '",
    ),
    ("did not find expected key", "a key was expected here", "give it the indentation of the keys above it"),
    (
        "expected '-' indicator",
        "an item of the list was expected here",
        "begin it with '- ' under the others",
    ),
    ("expected ',' or ']'", "a list that begins with '[' is never closed", "close it with ']'"),
    ("expected ',' or '}'", "a mapping that begins with '{' is never closed", "close it with '}'"),
    ("could not find expected ':'", "this line has no ':' after its key", "write it as 'key: value'"),
    ("cannot start any token", "a value cannot begin with this character", "put quotes around the value"),
    ("unexpected end of stream", "a quote is opened and never closed", "close it"),
    (
        "unknown escape character",
        "there is no such escape in double quotes",
        "write a backslash as two, or use ' '",
    ),
    ("found undefined tag", "the tag's handle is not known", "remove the tag"),
    ("duplicate anchor", "the anchor is defined twice", "rename one of them"),
    ("control characters are not allowed", "the file contains a control character", "remove it"),
)


def explain_yaml_error(error: yaml.YAMLError, file: str, lines: TextLines) -> Finding:
    """Return the finding for a text that is not YAML."""
    details: Any = error
    problem = str(
        getattr(details, "problem", None) or getattr(details, "reason", None) or "it has no structure"
    )
    mark = getattr(details, "problem_mark", None)
    index = mark.index if mark is not None else getattr(details, "position", 0)
    opened = getattr(details, "context_mark", None)
    if opened is not None and ("end of stream" in problem or not lines.text[index:].strip()):
        index = opened.index
    if lines.line(lines.at(index)[0])[:1] == "\t" and "token" in problem:
        message, fix = "a tab cannot indent", "indent with spaces"
    else:
        message, fix = next(
            ((explanation, remedy) for original, explanation, remedy in _WORDS if original in problem),
            (f"not readable as YAML: {problem}", ""),
        )
    label = ""
    if opened is not None and opened.index != index:
        label = f"in the value that begins on line {lines.at(opened.index)[0]}"
    return build_finding("MS001", message, lines.span(file, index, index + 1), label=label, fix=fix)
