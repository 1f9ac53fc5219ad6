"""Replace single values of a spec from the command line: `--set queries.funnel.trigger=once`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.pipeline.describe import nearest
from millstream.pipeline.document import Path, read
from millstream.pipeline.model import SinkEntry, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.diagnostics.finding import Finding


def override(data: Any, given: Sequence[str]) -> tuple[Any, dict[Path, str], list[Finding]]:
    """The data with each `a.b=c` applied in order, the places that were set, and what could not be."""
    data = copy.deepcopy(data)
    places: dict[Path, str] = {}
    wrong: list[Finding] = []
    for text in given:
        name, equals, value = text.partition("=")
        steps = name.strip().split(".")
        if not equals or not all(steps):
            wrong.append(
                finding(
                    "MS007",
                    f"--set {text} is not of the form a.b=c",
                    fix="write the keys with dots, '=' and a value",
                )
            )
            continue
        try:
            places[_put(data, steps, _value(value))] = text
        except _NoPlace as none:
            wrong.append(finding("MS007", f"--set {name}: {none.message}", fix=none.fix))
    return data, places, wrong


class _NoPlace(Exception):
    """The path of an override leads nowhere."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


def _value(text: str) -> Any:
    """What the text means as YAML; text that is none stays as it is."""
    if not text.strip():
        return text
    document = read("--set", text)
    return text if document.findings else document.data


def _put(data: Any, steps: list[str], value: Any) -> Path:
    """Set one value, making mappings on the way, and give its place."""
    here: Any = data
    path: list[str | int] = []
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        if isinstance(here, list):
            if not step.isdecimal() or int(step) >= len(here):
                known = f"0 to {len(here) - 1}" if here else "nothing"
                raise _NoPlace(
                    f"'{'.'.join(steps[:number])}' is a list of {known}, not of '{step}'",
                    "name an item by its number",
                )
            at: str | int = int(step)
        elif isinstance(here, dict):
            at = step
            if not last and step not in here and path in (["sources"], ["views"], ["queries"]):
                near = nearest(step, here)
                raise _NoPlace(f"there is no '{step}' in {path[0]}", f"write '{near}'" if near else "")
        else:
            raise _NoPlace(f"'{'.'.join(steps[:number])}' is a single value and holds nothing")
        path.append(at)
        if last:
            here[at] = value
            break
        inside: Any = here[int(at)] if isinstance(here, list) else here.get(at)
        if not isinstance(inside, dict | list):
            inside = _opened(str(at), inside, number)
            here[at] = inside
        here = inside
    return tuple(path)


def _opened(key: str, value: Any, depth: int) -> Any:
    """A mapping in place of a bare value that is short for one: `parquet: data/x` is `{path: data/x}`."""
    if value is None:
        return {}
    kind = {**SinkEntry.kinds(), **SourceEntry.kinds()}.get(key)
    return {kind.main: value} if kind and depth >= 2 else value  # type: ignore[attr-defined]
