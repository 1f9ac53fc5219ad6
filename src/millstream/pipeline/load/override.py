"""Replace single values of a spec from the command line: `--set queries.funnel.trigger=once`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.introspection import find_nearest
from millstream.pipeline.load.document import Path, parse_yaml
from millstream.pipeline.model import SinkEntry, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.diagnostics.finding import Finding


def apply_overrides(data: Any, overrides: Sequence[str]) -> tuple[Any, dict[Path, str], list[Finding]]:
    """Apply each `key=value`; return the data, the paths that were set, and a finding for each that failed."""
    data = _copy(data)
    places: dict[Path, str] = {}
    findings: list[Finding] = []
    for text in overrides:
        name, equals, value = text.partition("=")
        steps = name.strip().split(".")
        if not equals or not all(steps):
            findings.append(
                build_finding(
                    "MS007",
                    f"--set {text} does not have the form KEY=VALUE",
                    fix="write the path of the key, '=' and the value, as in queries.orders.output_mode=update",
                )
            )
            continue
        try:
            places[_set_value(data, steps, _value(value))] = text
        except _UnknownPath as error:
            findings.append(build_finding("MS007", f"--set {name}: {error.message}", fix=error.fix))
    return data, places, findings


def _copy(data: Any) -> Any:
    """Return mappings and lists without any that two places share, as settings of a pipeline in Python may be."""
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(value) for value in data] if isinstance(data, list) else data


class _UnknownPath(Exception):
    """Raised if the path of an override does not exist."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


def _value(text: str) -> Any:
    """Parse the text as YAML; a text that is not YAML is returned unchanged."""
    if not text.strip():
        return text
    document = parse_yaml("--set", text)
    return text if document.findings else document.data


def _set_value(data: Any, steps: list[str], value: Any) -> Path:
    """Set one value, create missing mappings, and return the value's path."""
    current: Any = data
    path: list[str | int] = []
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        if isinstance(current, list):
            if not step.isdecimal() or int(step) >= len(current):
                indexes = f"items 0 to {len(current) - 1}" if current else "no items"
                raise _UnknownPath(
                    f"'{'.'.join(steps[:number])}' is a list with {indexes}; '{step}' is not one of them",
                    "name an item by its number",
                )
            key: str | int = int(step)
        elif isinstance(current, dict):
            key = step
            if not last and step not in current and path in (["sources"], ["views"], ["queries"]):
                near = find_nearest(step, current)
                raise _UnknownPath(f"there is no '{step}' in {path[0]}", f"write '{near}'" if near else "")
        else:
            raise _UnknownPath(f"'{'.'.join(steps[:number])}' is a single value and has no keys")
        path.append(key)
        if last:
            current[key] = value
            break
        child: Any = current[int(key)] if isinstance(current, list) else current.get(key)
        if not isinstance(child, dict | list):
            child = _expand_plain_value(str(key), child, number)
            current[key] = child
        current = child
    return tuple(path)


def _expand_plain_value(key: str, value: Any, depth: int) -> Any:
    """Return the mapping that a plain value abbreviates: `parquet: data/x` is `{path: data/x}`."""
    if value is None:
        return {}
    kind = {**SinkEntry.kinds(), **SourceEntry.kinds()}.get(key)
    return {kind.main: value} if kind and depth >= 2 else value  # type: ignore[attr-defined]
