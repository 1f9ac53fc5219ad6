"""Check the text of a document without Spark."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from millstream.checking.check import check
from millstream.diagnostics.formats import edit_to_json, finding_to_json
from millstream.pipeline.spec_file import display_path, load_text
from millstream.spec.secrets.redaction import redact_values
from millstream.testing.files import loader
from millstream.testing.files.discovery import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Environment = Callable[[Path], Mapping[str, str]]

_SPEC = re.compile(r"^[\"']?(?:sources|queries)[\"']?\s*:", re.MULTILINE)
_TESTS = re.compile(r"^[\"']?tests[\"']?\s*:", re.MULTILINE)
_SCRIPT = re.compile(
    r"\bwriteStream\b|^\s*(?:import|from) (?:dlt|millstream|pyspark\.pipelines)\b"
    r"|^\s*from pyspark import pipelines\b",
    re.MULTILINE,
)


class DocumentKind(StrEnum):
    """What is checked in a document."""

    SPEC = "spec"
    TESTS = "tests"
    SCRIPT = "script"
    """A PySpark script, a declarative pipeline or a spec in Python: checked only with Spark, when it is saved."""
    OTHER = "other"
    """Not checked."""


def find_kind(path: Path, text: str) -> DocumentKind:
    """Return the kind of a document, by its name and its text."""
    if path.suffix in (".yml", ".yaml"):
        if FOLDER in path.parts and _TESTS.search(text):
            return DocumentKind.TESTS
        return DocumentKind.SPEC if _SPEC.search(text) else DocumentKind.OTHER
    return DocumentKind.SCRIPT if path.suffix == ".py" and _SCRIPT.search(text) else DocumentKind.OTHER


def check_text(path: Path, text: str, environment: Environment) -> list[dict[str, Any]]:
    """Return the findings about a text as if it were saved at this path, in the JSON of `check --server`.

    `environment` returns the variables of a spec in a folder.
    """
    name = str(display_path(path))
    match find_kind(path, text):
        case DocumentKind.SPEC:
            findings = check(load_text(name, text, path.parent, environment(path.parent))).findings
        case DocumentKind.TESTS:
            findings = list(loader.load_text(name, text, path, environment).findings)
        case DocumentKind.SCRIPT | DocumentKind.OTHER:
            findings = []
    # The editor writes the lines of an edit into the file, so secrets in them stay as they are.
    return [
        {**redact_finding(finding_to_json(finding)), "edit": edit_to_json(finding.edit)}
        for finding in findings
    ]


def redact_finding(finding: dict[str, Any]) -> dict[str, Any]:
    """Replace values of secrets in the texts of a finding."""
    return {
        key: redact_values(value) if isinstance(value, str) and key in ("message", "why", "fix") else value
        for key, value in finding.items()
    }
