"""Load a test file: its tests, or all that is wrong with it, each at its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Finding, Span
from millstream.pipeline.document import MOST_BYTES, Document, read
from millstream.pipeline.loaded import in_file_order, shown
from millstream.testing.cases import Cases
from millstream.testing.form import SuiteForm
from millstream.testing.ground import Ground
from millstream.testing.specs import Specs, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from millstream.testing.case import Case

    Environment = Callable[[Path], Mapping[str, str]]


@dataclass(frozen=True)
class Suite:
    """A test file as far as it could be read.

    `cases` is empty when there is an error among the `findings`. `texts` holds each file that was read, by the
    name findings call it; `files` are the pipelines that the tests are about.
    """

    file: Path
    cases: tuple[Case, ...]
    findings: tuple[Finding, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    @property
    def failed(self) -> bool:
        """Is there an error among the findings?"""
        return errors(list(self.findings))


def load(file: Path, env: Environment, *, filling: bool = False) -> Suite:
    """Load the test file at a path. Never raises for its content.

    `env` gives the variables that a spec in a folder sees. With `filling`, an empty `expect` stands for no rows.
    """
    name = str(shown(file))
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_BYTES + 4).decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        return _unreadable(file, name, f"the file is not UTF-8 text (byte {wrong.start})", "save it as UTF-8")
    except (OSError, ValueError) as failed:
        said = getattr(failed, "strerror", None) or "it is no path"
        return _unreadable(file, name, f"the file cannot be read: {said}", "name another")
    return load_text(name, text, file, env, filling=filling)


def load_text(name: str, text: str, file: Path, env: Environment, *, filling: bool = False) -> Suite:
    """Load a test file from its text; `file` is where it stands, `name` what findings call it."""
    document = read(name, text)
    if not document.unreadable and not isinstance(document.data, dict):
        said = finding(
            "MS001", "a test file is keys with values", Span.point(name), fix="begin with 'tests:'"
        )
        document.findings.append(said)
    if document.unreadable:
        return Suite(file, (), tuple(document.findings), {name: text})
    ground = Ground(document)
    specs = Specs(ground, file.parent, env)
    cases = _cases(document, ground, specs, file, filling=filling)
    texts = {name: text, **specs.texts}
    # A value that a table does not give can only be wrong because it is not given.
    blamed = {found.span for found in ground.findings if found.code == "MS020"}
    kept = [found for found in ground.findings if found.code == "MS020" or found.span not in blamed]
    findings = in_file_order(kept, name)
    return Suite(file, () if errors(findings) else tuple(cases), tuple(findings), texts, tuple(specs.files))


def _cases(document: Document, ground: Ground, specs: Specs, file: Path, *, filling: bool) -> list[Case]:
    said: dict[str, Any] = ground.known("a test file", document.data, (), SuiteForm)
    specs.begin(said.get("pipeline"))
    if "tests" not in said:
        ground.findings.append(
            finding(
                "MS004",
                "the file has no 'tests'",
                Span.point(document.file),
                fix="add 'tests:' with a sentence for each test",
            )
        )
        return []
    cases = Cases(ground, specs, file, filling=filling).read(said["tests"])
    seen: dict[str, Case] = {}
    for case in cases:
        if case.name in seen:
            ground.findings.append(
                finding(
                    "MS005", f"two tests are called '{case.name}'", case.where, fix="give one another name"
                )
            )
        seen[case.name] = case
    return cases


def _unreadable(file: Path, name: str, message: str, fix: str) -> Suite:
    return Suite(file, (), (finding("MS001", message, Span.point(name), fix=fix),))
