"""The page of codes: each finding that a check may have."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache

from generators.layout import MADE, PACKAGE, ROOT, escaped, joined
from millstream.analysis.rule_pages import find_pages as code_pages
from millstream.analysis.rule_pages import parse_spark_behaviour, read_page
from millstream.diagnostics.spec_codes import CODES


def rules_page() -> str:
    """Every code a finding may have, by number."""
    intro = (
        "Each finding of `millstream check` has a code and, in JSON output, a name. The meaning of a code never "
        "changes. `millstream explain CODE` prints the page to which the name links.\n\n"
        "A comment on the line of a finding, or above it, suppresses it: `# millstream: allow MS201 — reason`, with "
        "`--` in place of `#` in SQL. The reason is required, and a comment that suppresses nothing is itself a "
        "finding. Errors in the spec itself, such as a wrong key or type, cannot be allowed.\n\n"
        "The last column says what Spark does with such a pipeline if it is started without the check. A test "
        "compares this with Spark for each page."
    )
    rows = [
        f"| {code} | {f'[{name}]({link})' if link else name} | {severity(code)} | {escaped(what)} | {spark(code)} |"
        for code, (name, what, link) in sorted(codes().items())
    ]
    columns = ["code", "name", "severity", "what it reports", "without this check, Spark"]
    head = [f"| {' | '.join(columns)} |", "| --- | --- | --- | --- | --- |"]
    return joined(["# Codes of findings", MADE, intro, "\n".join([*head, *rows])])


def severity(code: str) -> str:
    """Return how grave the findings of a code are: as its page shows them, or else as the package builds them."""
    page = read_page(code) or ""
    matches = re.findall(rf"(?:#|--) (error|warning|info): (?:\[MS\d{{3}}\] ?)*\[{code}\]", page)
    matches += re.findall(rf"^(error|warning|info)\[{code}\]", page, re.MULTILINE)
    matches = matches or _severities_in_code().get(code) or ["error"]
    return " or ".join(word for word in ("error", "warning", "info") if word in matches)


@cache
def _severities_in_code() -> dict[str, list[str]]:
    """By code: the severities with which the package builds findings."""
    result: dict[str, list[str]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assigned: dict[str, list[str]] = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                assigned[node.targets[0].id] += _severities_of(node.value)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("build_finding")):
                continue
            value = next((item.value for item in node.keywords if item.arg == "severity"), None)
            words = ["error"] if value is None else _severities_of(value)
            if isinstance(value, ast.Name):
                words = assigned[value.id]
            for constant in ast.walk(node.args[0]):
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    result[constant.value] += words
    return result


def _severities_of(expression: ast.expr) -> list[str]:
    """Return the severities that an expression names: `Severity.INFO if … else Severity.ERROR`."""
    return [
        node.attr.lower()
        for node in ast.walk(expression)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Severity"
    ]


def spark(code: str) -> str:
    """What Spark does without the check, as the code's page says; nothing where Spark has no part in it."""
    return parse_spark_behaviour(read_page(code) or "") or ""


def codes() -> dict[str, tuple[str, str, str]]:
    """By code: the name, one sentence, and the link to its page from docs/reference, or nothing."""
    actual = {code: (name, what, link(code)) for code, (name, what) in CODES.items()}
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for code, name in re.findall(r'Code\(\s*"(MS\d{3})",\s*"([\w-]+)"', text):
            actual[code] = (name, CODES[code][1] if code in CODES else sentence(text), link(code))
    for file in sorted((PACKAGE / "analysis" / "rules").glob("ms*.py")):
        code, name = file.stem[:5].upper(), file.stem[6:].replace("_", "-")
        actual[code] = (name, sentence(file.read_text(encoding="utf-8")), link(code))
    return actual


def link(code: str) -> str:
    """The way from docs/reference to the page of a code, or nothing."""
    file = code_pages().get(code)
    return f"../../{file.relative_to(ROOT).as_posix()}" if file else ""


def sentence(source: str) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
