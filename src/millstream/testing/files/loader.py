"""Load a test file: its tests, or findings with their positions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.load.document import MOST_BYTES, YamlDocument, parse_yaml
from millstream.pipeline.load.loader import display_path, sort_findings
from millstream.testing.files.case_parser import Cases
from millstream.testing.files.parse_context import ParseContext
from millstream.testing.files.pipelines import Specs, has_errors
from millstream.testing.files.schema import SuiteForm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from millstream.testing.model import Case

    Environment = Callable[[Path], Mapping[str, str]]


@dataclass(frozen=True)
class Suite:
    """The result of loading a test file.

    `cases` is empty if `findings` contains an error. `texts` maps the file names used in findings to the text of each
    file that was read; `files` are the pipeline files under test.
    """

    file: Path
    cases: tuple[Case, ...]
    findings: tuple[Finding, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Return whether the findings contain an error."""
        return has_errors(list(self.findings))


def load(file: Path, env: Environment, *, filling: bool = False) -> Suite:
    """Load the test file at a path. Never raises for its content.

    `env` returns the environment variables of a spec in a folder. With `filling`, an empty `expect` means no rows.
    """
    name = str(display_path(file))
    try:
        with file.open("rb") as stream:
            text = stream.read(MOST_BYTES + 4).decode("utf-8-sig")
    except UnicodeDecodeError as decode_error:
        return _unreadable(
            file, name, f"the file is not UTF-8 text (byte {decode_error.start})", "save it as UTF-8"
        )
    except (OSError, ValueError) as os_error:
        reason = getattr(os_error, "strerror", None) or "invalid path"
        return _unreadable(file, name, f"the file cannot be read: {reason}", "name another file")
    return load_text(name, text, file, env, filling=filling)


def load_text(name: str, text: str, file: Path, env: Environment, *, filling: bool = False) -> Suite:
    """Load a test file from its text; `file` is its path, `name` its name in findings."""
    document = parse_yaml(name, text)
    if not document.is_unreadable and not isinstance(document.data, dict):
        not_a_mapping = build_finding(
            "MS001", "a test file must be a mapping", Span.point(name), fix="begin with 'tests:'"
        )
        document.findings.append(not_a_mapping)
    if document.is_unreadable:
        return Suite(file, (), tuple(document.findings), {name: text})
    ground = ParseContext(document)
    specs = Specs(ground, file.parent, env)
    cases = _parse_cases(document, ground, specs, file, filling=filling)
    texts = {name: text, **specs.texts}
    # A value with an undefined placeholder has no other error worth reporting.
    blamed_spans = {problem.span for problem in ground.findings if problem.code == "MS020"}
    relevant = [
        problem for problem in ground.findings if problem.code == "MS020" or problem.span not in blamed_spans
    ]
    findings = sort_findings(relevant, name)
    return Suite(
        file, () if has_errors(findings) else tuple(cases), tuple(findings), texts, tuple(specs.files)
    )


def _parse_cases(
    document: YamlDocument, ground: ParseContext, specs: Specs, file: Path, *, filling: bool
) -> list[Case]:
    settings: dict[str, Any] = ground.drop_unknown_keys("a test file", document.data, (), SuiteForm)
    specs.begin(settings.get("pipeline"))
    if "tests" not in settings:
        ground.findings.append(
            build_finding(
                "MS004",
                "the file has no 'tests'",
                Span.point(document.file),
                fix="add 'tests:' with a sentence for each test",
            )
        )
        return []
    cases = Cases(ground, specs, file, filling=filling).read(settings["tests"])
    cases_by_name: dict[str, Case] = {}
    for case in cases:
        if case.name in cases_by_name:
            ground.findings.append(
                build_finding(
                    "MS005", f"two tests are called '{case.name}'", case.where, fix="give one another name"
                )
            )
        cases_by_name[case.name] = case
    return cases


def _unreadable(file: Path, name: str, message: str, fix: str) -> Suite:
    return Suite(file, (), (build_finding("MS001", message, Span.point(name), fix=fix),))
