"""Read an example's expected.yml: for each size what is done there, and what its sinks hold afterwards.

```yaml
sizes:
  full:
    prepare: ["python data/make.py"]     # commands in the copy, before anything; no shell
    beside: ["python data/say.py"]       # commands that go on while it runs, and are ended after it
    traffic: [--rows, "20000"]           # words for `millstream traffic`; absent: nothing is sent
    run: [--until-caught-up]             # words for `millstream run`
    show:
      funnel: {rows: 7, sum: {clicks: 14063}, has: [{page: home, clicks: 5330}]}
      purchases/postgres: {rows: {at_least: 1}}
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError, model_validator

from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.load.document import YamlDocument
from millstream.pipeline.load.document import parse_yaml as read_yaml
from millstream.spec.base import Spec

if TYPE_CHECKING:
    from pathlib import Path

FILE = "expected.yml"


class Bounds(Spec):
    """A number that is not the same in every run."""

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Bounds:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most or both")
        return self

    def __str__(self) -> str:
        texts = [f"{word} {end:,g}" for word, end in (("at least", self.at_least), ("at most", self.at_most))
                if end is not None]  # fmt: skip
        return " and ".join(texts)


Number = int | float | Bounds


class Held(Spec):
    """What a sink holds: its number of rows, sums of columns, and parts of rows that it has."""

    rows: Number | None = None
    sum: dict[str, Number] = {}
    has: list[dict[str, Any]] = []


class Size(Spec):
    """One way to try an example."""

    prepare: list[str] = []
    beside: list[str] = []
    traffic: list[str] | None = None
    run: list[str] = ["--until-caught-up"]
    show: dict[str, Held] = Field(min_length=1)


class Expected(Spec):
    """The file: what is done and wanted, by size."""

    sizes: dict[str, Size] = Field(min_length=1)


def read(path: Path) -> tuple[Expected, YamlDocument]:
    """What a file expects, and where each value stands. Raises WrongUse, which names what is wrong with it."""
    document = read_yaml(path.name, path.read_text(encoding="utf-8"))
    if document.findings:
        raise InvalidInput(f"{path}: {document.findings[0].message}", "correct the file")
    try:
        return Expected.model_validate(document.data), document
    except ValidationError as failed:
        texts = [
            f"{'.'.join(str(part) for part in error['loc']) or 'the file'}: "
            f"{error['msg'].removeprefix('Value error, ')}"
            for error in failed.errors()
        ]
        raise InvalidInput(f"{path}: {'; '.join(texts)}", "correct the file") from failed
