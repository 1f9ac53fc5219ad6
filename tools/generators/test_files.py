"""The page of test files: every key of one."""

from __future__ import annotations

import textwrap

from generators.fields import table
from generators.layout import MADE, joined, summary
from millstream.testing.files import schema

# The forms of a test file, each with its heading.
FORMS = {
    schema.SuiteForm: "a test file",
    schema.CaseForm: "a test",
    schema.StepForm: "a step",
    schema.RecordForm: "a message",
}


def tests_page() -> str:
    """Every key of a test file."""
    intro = """\
        A test file is YAML below a folder `tests`, with a key `tests` at its top; [how to write
        one](../how-to/test.md) begins with five lines. An unknown key is an error that names the nearest known
        one, and so is a source, column or query that the pipeline does not have. Paths start at the test file's
        folder.

        Times without a zone are in UTC. A row is columns by name. Wanted rows are compared with rows that came by the
        columns they name, in any order, each with one, as values of the column's type: a time as a moment, a decimal
        as a number, `{a: 1}` with the field `a` of a struct or the key `a` of a map, binary as text or base64.
        Null equals null alone."""
    parts = ["# Test files", MADE, textwrap.dedent(intro)]
    for item, title in FORMS.items():
        parts += [f"## {title[0].upper()}{title[1:]}", summary(item).partition("\n")[2].strip(), table(item)]
    page = joined(parts)
    for item, title in FORMS.items():
        page = page.replace(
            f"[{item.__name__}](#{item.__name__.lower()})", f"[{title}](#{title.replace(' ', '-')})"
        )
    return page
