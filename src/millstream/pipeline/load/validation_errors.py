"""Translate validation errors of the model into findings with a position, a reason and a fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.introspection import allowed_keys, fields_by_key, find_nearest, model_at
from millstream.pipeline.kinds import KindEntry
from millstream.pipeline.load.value_phrases import (
    describe_expected,
    describe_path,
    describe_purpose,
    describe_value,
    restore_variables,
)

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.load.document import Path
    from millstream.pipeline.load.places import ValuePositions

Error = Mapping[str, Any]

# Keys that a user may expect, by the last two steps of their path, with a more helpful message than "no such key".
_IMPOSSIBLE: dict[Path, tuple[str, str, str]] = {
    ("watermark", "late"): (
        "late rows cannot become dead letters or be treated otherwise: they are dropped and counted",
        "Spark drops them inside the stateful operator and reports only their number",
        "remove 'late'; to keep rows that arrive long after their event time, add an expectation to the source with "
        "otherwise: dead_letter",
    )
}


@dataclass
class ValidationErrors:
    """Turns the errors of `ValidationError.errors()` for one spec into findings."""

    data: Any
    places: ValuePositions
    variables: Mapping[Path, tuple[str, str]] = field(default_factory=dict)

    def findings(self, errors: Iterable[Error]) -> list[Finding]:
        """Return one finding for each path that has an error."""
        by_place: dict[tuple[Path, bool], list[Error]] = {}
        findings: list[Finding] = []
        for error in errors:
            path = self._path(error)
            if error["loc"][-1:] == ("[key]",):
                findings.append(self._invalid_name(path))
                continue
            if error["type"] == "too_short" and self._at(path):
                # The list is not too short: its items are invalid and have their own errors.
                continue
            by_place.setdefault((path, error["type"] == "extra_forbidden"), []).append(error)
        extras = [path for path, extra in by_place if extra]
        misspelt = {path[:-1] for path in extras if self._replaces_kind(path)}
        intended = {(*path[:-1], self._intended_key(path)) for path in extras}
        for (path, extra), group in by_place.items():
            if extra:
                findings.append(self.unknown(path))
            elif group[0]["type"] == "missing":
                model = model_at(path[:-1])
                if model and issubclass(model, KindEntry) and path[-1] == model.kind_field:
                    if path[:-1] not in misspelt:
                        findings.append(self._no_kind(path[:-1], model))
                elif path not in intended:
                    findings.append(self._missing(path))
            else:
                findings.append(self._invalid_value(path, group))
        return findings

    def _path(self, error: Error) -> Path:
        """Return the path of an error in the terms of the file: kinds by name, without pydantic's internal steps."""
        path: list[str | int] = []
        current: Any = self.data
        steps = error["loc"]
        for number, step in enumerate(steps):
            last = number == len(steps) - 1
            model = model_at(path)
            if isinstance(current, list) and isinstance(step, int):
                step_in_file: str | int = step
            elif isinstance(current, dict) and step in current:
                step_in_file = step
            elif isinstance(step, int):
                continue
            elif model and issubclass(model, KindEntry) and step == model.kind_field:
                step_in_file = (
                    next((key for key in current if key in model.kinds()), step)
                    if isinstance(current, dict)
                    else step
                )
            elif model and step in fields_by_key(model) and (last or not isinstance(current, dict)):
                step_in_file = step
            else:
                continue
            path.append(step_in_file)
            try:
                current = current[step_in_file]
            except (KeyError, IndexError, TypeError):
                current = current if not isinstance(current, dict | list) else None
        return tuple(path)

    def _at(self, path: Path) -> Any:
        """Return the value at a path; for a plain value that abbreviates a mapping, that value."""
        current: Any = self.data
        for step in path:
            if not isinstance(current, dict | list):
                break
            try:
                current = current[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                return None
        return current

    def _intended_key(self, path: Path) -> str | None:
        """Return the key that an unknown key most likely means, preferably one that is not set already."""
        model, siblings = model_at(path[:-1]), self._at(path[:-1])
        known = allowed_keys(model) if model else []
        present = siblings if isinstance(siblings, dict) else {}
        return find_nearest(str(path[-1]), [key for key in known if key not in present] or known)

    def _replaces_kind(self, path: Path) -> bool:
        """Return whether an unknown key of a source or sink is in the place of its kind."""
        model, siblings = model_at(path[:-1]), self._at(path[:-1])
        if model is None or not issubclass(model, KindEntry) or any(key in model.kinds() for key in siblings):
            return False
        return self._intended_key(path) in model.kinds() or isinstance(siblings.get(path[-1]), dict)

    def unknown(self, path: Path) -> Finding:
        """Return the finding for an unknown key."""
        key, model = str(path[-1]), model_at(path[:-1])
        if path[-2:] in _IMPOSSIBLE:
            message, reason_text, fix = _IMPOSSIBLE[path[-2:]]
            return build_finding("MS002", message, self.places.key(*path), why=reason_text, fix=fix)
        known = allowed_keys(model) if model else []
        near = self._intended_key(path)
        owner = describe_path(path[:-1]) if len(path) > 1 else "the spec"
        fix = f"write '{near}'" if near else f"remove it; known here: {', '.join(known)}"
        reason_text = ""
        if model and issubclass(model, KindEntry) and self._replaces_kind(path):
            reason_text = f"a {model.noun} is one of {', '.join(model.kinds())}"
            fix = f"write '{near}'" if near in model.kinds() else "name one of these"
            return build_finding(
                "MS002",
                f"there is no {model.noun} of kind '{key}'",
                self.places.key(*path),
                why=reason_text,
                fix=fix,
            )
        if not near and (other := self._misplaced_key(path, key)):
            reason_text, fix = other
        span, document = self.places.key(*path), self.places.document
        edit = document.rename_key(span, near) if near and document else None
        return build_finding(
            "MS002", f"{owner} has no key '{key}'", span, why=reason_text, fix=fix, edit=edit
        )

    def _misplaced_key(self, path: Path, key: str) -> tuple[str, str] | None:
        """Return the reason and fix for a key that belongs inside the kind's settings, or outside of them."""
        model, outer = model_at(path[:-1]), model_at(path[:-2])
        if model and issubclass(model, KindEntry):
            named = next((name for name in self._at(path[:-1]) or () if name in model.kinds()), None)
            if named and key in fields_by_key(model.kinds()[named]):
                return f"'{key}' is a setting of {named}", f"move it into '{named}: {{…}}'"
        if outer and issubclass(outer, KindEntry) and key in fields_by_key(outer):
            return (
                f"'{key}' is a key of the {outer.noun}, not of {path[-2]}",
                f"move it out, next to '{path[-2]}:'",
            )
        return None

    def _no_kind(self, path: Path, model: type[KindEntry]) -> Finding:
        """Return the finding for a source or sink without a kind."""
        noun = model.noun
        entry_label = f"a sink of {describe_path(path[:2])}" if len(path) > 2 else describe_path(path)
        return build_finding(
            "MS008",
            f"{entry_label} does not name a kind of {noun}",
            self.places.key(*path),
            why=f"the kind is a key: 'KIND: {{…}}'; kinds of {noun}: {', '.join(model.kinds())}",
            fix="add the kind with its settings",
        )

    def _invalid_name(self, path: Path) -> Finding:
        """Return the finding for a name that Spark would refuse."""
        word = str(path[-1]) if path else ""
        plain = re.sub(r"\W+", "_", word, flags=re.ASCII)
        fix = f"write '{plain}'" if plain.isidentifier() else ""
        reason_text = "a name begins with a letter and continues with letters, digits and _"
        return build_finding(
            "MS003", f"'{word}' cannot be a name", self.places.key(*path), why=reason_text, fix=fix
        )

    def _missing(self, path: Path) -> Finding:
        """Return the finding for a missing required key."""
        message = f"{describe_path(path[:-1])} has no '{path[-1]}'"
        return build_finding(
            "MS004",
            message,
            self.places.key(*path[:-1]),
            why=describe_purpose(path),
            fix=f"add '{path[-1]}: …'",
        )

    def _invalid_value(self, path: Path, group: list[Error]) -> Finding:
        """Return the finding for an invalid value."""
        error, value, span = group[0], self._at(path), self.places.value(*path)
        kind, context = error["type"], error.get("ctx") or {}
        if kind == "kinds":
            return build_finding(
                "MS008",
                f"{describe_path(path)} {error['msg']}",
                span,
                fix="keep only one of them and add another entry for the other",
            )
        expected = list(
            dict.fromkeys(
                filter(None, (describe_expected(item["type"], item.get("ctx") or {}) for item in group))
            )
        )
        if value is None and expected:
            message = f"{describe_path(path)} is empty"
            return build_finding(
                "MS003", message, span, why=describe_purpose(path), fix=f"set it to {' or '.join(expected)}"
            )
        if not expected:
            message = (
                str(context["error"])
                if "error" in context
                else f"{describe_path(path)} is not valid: {error['msg']}"
            )
            return build_finding(
                "MS003",
                restore_variables(message, path, self.variables).rstrip("."),
                span,
                why=describe_purpose(path),
            )
        message = (
            f"{describe_path(path)} takes {' or '.join(expected)}, not "
            f"{describe_value(path, value, self.variables)}"
        )
        return build_finding(
            "MS003", message, span, why=describe_purpose(path), fix=_suggest_fix(kind, context, path, value)
        )


def _suggest_fix(kind: str, context: Mapping[str, Any], path: Path, value: Any) -> str:
    """Return what to write instead, if that is clear."""
    if kind in ("enum", "literal_error") and isinstance(value, str):
        words = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        near = find_nearest(value, words)
        return f"write '{near}'" if near else ""
    if kind == "string_type" and isinstance(value, int | float):
        return f'put it in quotes: "{str(value).lower()}"'
    if kind.startswith("bool") and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return f"write {'true' if value.lower() in ('yes', 'on') else 'false'}"
    if kind in ("tuple_type", "list_type") and isinstance(value, str | int):
        return f"write {path[-1]}: [{value}]"
    return ""
