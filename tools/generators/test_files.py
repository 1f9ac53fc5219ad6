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
        A test file is a YAML file below a folder `tests`, with `tests` as a top-level key.
        [How to write a test](../how-to/test.md) begins with an example of five lines. An unknown key is an error,
        whose message names the most similar known key. A source, column or query that the pipeline does not have is
        an error too. Paths are relative to the folder of the test file.

        Times without a zone are in UTC. A row is a mapping of column names to values. Each expected row must match
        one actual row, in any order; only the columns that the expected row names are compared. The type of the
        column decides how values are compared: a time as a point in time, a decimal as a number, `{a: 1}` with the
        field `a` of a struct or the key `a` of a map, binary as text or base64. Null equals only null."""
    parts = ["# Test files", MADE, textwrap.dedent(intro)]
    for item, title in FORMS.items():
        parts += [f"## {title[0].upper()}{title[1:]}", summary(item).partition("\n")[2].strip(), table(item)]
    page = joined(parts)
    for item, title in FORMS.items():
        page = page.replace(
            f"[{item.__name__}](#{item.__name__.lower()})", f"[{title}](#{title.replace(' ', '-')})"
        )
    return page
