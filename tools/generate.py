"""Write docs/reference from the code: each source and sink, the spec, the commands and the codes.

`python tools/generate.py` writes the pages; `--check` writes nothing and ends with 1 when one differs. What makes
each page is in generators/.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from generators.codes import rules_page
from generators.commands import cli_page
from generators.coverage import NotThere, coverage_page
from generators.figures import metrics_page, state_schema
from generators.kinds import kind_pages
from generators.layout import MADE, OUT, ROOT
from generators.spec import spec_page
from generators.test_files import tests_page
from millstream.analysis.explain.glossary import read_glossary

if TYPE_CHECKING:
    from pathlib import Path


def pages() -> dict[Path, str]:
    """Every generated page: its path from the root, and its text."""
    result = {
        **kind_pages(),
        OUT / "spec.md": spec_page(),
        OUT / "cli.md": cli_page(),
        OUT / "glossary.md": read_glossary().replace("# Glossary\n", f"# Glossary\n\n{MADE}\n", 1),
        OUT / "rules.md": rules_page(),
        OUT / "tests.md": tests_page(),
        OUT / "metrics.md": metrics_page(),
        OUT / "page-api.schema.json": state_schema(),
    }
    return {**result, OUT / "coverage.md": coverage_page(made=result)}


def main() -> int:
    """Write the pages or compare them; 1 when they differ."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--check", action="store_true", help="write nothing; end with 1 when a page differs")
    check = reader.parse_args().check
    try:
        result = pages()
    except NotThere as error:
        print(error)
        return 1
    known = {
        path.relative_to(ROOT)
        for folder in ("sources", "sinks", "dead-letters")
        for path in (ROOT / OUT / folder).glob("*.md")
    }
    stale = sorted(known - set(result))
    for path, text in result.items():
        here = ROOT / path
        if not here.is_file() or here.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                here.parent.mkdir(parents=True, exist_ok=True)
                here.write_text(text, encoding="utf-8")
    for path in known - set(result) if not check else ():
        (ROOT / path).unlink()
    for path in stale:
        print(f"{path} {'is not what the code says; run: python tools/generate.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
