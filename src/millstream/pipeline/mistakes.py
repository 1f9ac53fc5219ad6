"""Errors of the model as findings with a place, a reason and a cure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.pipeline.describe import fields, keys, model_at, nearest
from millstream.pipeline.kinds import KindEntry
from millstream.pipeline.wording import called, given, hide, reason, takes

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.document import Path
    from millstream.pipeline.places import Places

Error = Mapping[str, Any]

# Keys that one would look for, by the last two steps of their place: what is said in place of "there is no such key".
_IMPOSSIBLE: dict[Path, tuple[str, str, str]] = {
    ("watermark", "late"): (
        "late rows cannot be set aside or treated otherwise: they are dropped and counted",
        "Spark drops them inside the operator that keeps state, and hands over nothing but their number",
        "remove 'late'; to keep rows that arrive long after their time, expect of the source that they do not, with "
        "otherwise: dead_letter",
    )
}


@dataclass
class Mistakes:
    """Turns the errors of `ValidationError.errors()` for one spec into findings."""

    data: Any
    places: Places
    written: Mapping[Path, tuple[str, str]] = field(default_factory=dict)

    def findings(self, errors: Iterable[Error]) -> list[Finding]:
        """One finding for each place that is wrong."""
        by_place: dict[tuple[Path, bool], list[Error]] = {}
        found: list[Finding] = []
        for error in errors:
            path = self._path(error)
            if error["loc"][-1:] == ("[key]",):
                found.append(self._name(path))
                continue
            if error["type"] == "too_short" and self._at(path):
                # The list is not short: its items are wrong, and have errors of their own.
                continue
            by_place.setdefault((path, error["type"] == "extra_forbidden"), []).append(error)
        extras = [path for path, extra in by_place if extra]
        misspelt = {path[:-1] for path in extras if self._for_kind(path)}
        meant = {(*path[:-1], self._meant(path)) for path in extras}
        for (path, extra), group in by_place.items():
            if extra:
                found.append(self.unknown(path))
            elif group[0]["type"] == "missing":
                model = model_at(path[:-1])
                if model and issubclass(model, KindEntry) and path[-1] == model.kind_field:
                    if path[:-1] not in misspelt:
                        found.append(self._no_kind(path[:-1], model))
                elif path not in meant:
                    found.append(self._missing(path))
            else:
                found.append(self._wrong(path, group))
        return found

    def _path(self, error: Error) -> Path:
        """The place of an error in the words of the file: kinds by name, no steps that only pydantic has."""
        path: list[str | int] = []
        here: Any = self.data
        steps = error["loc"]
        for number, step in enumerate(steps):
            last = number == len(steps) - 1
            model = model_at(path)
            if isinstance(here, list) and isinstance(step, int):
                inside: str | int = step
            elif isinstance(here, dict) and step in here:
                inside = step
            elif isinstance(step, int):
                continue
            elif model and issubclass(model, KindEntry) and step == model.kind_field:
                inside = (
                    next((key for key in here if key in model.kinds()), step)
                    if isinstance(here, dict)
                    else step
                )
            elif model and step in fields(model) and (last or not isinstance(here, dict)):
                inside = step
            else:
                continue
            path.append(inside)
            try:
                here = here[inside]
            except (KeyError, IndexError, TypeError):
                here = here if not isinstance(here, dict | list) else None
        return tuple(path)

    def _at(self, path: Path) -> Any:
        """The value at a place; for a bare value, that value."""
        here: Any = self.data
        for step in path:
            if not isinstance(here, dict | list):
                break
            try:
                here = here[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                return None
        return here

    def _meant(self, path: Path) -> str | None:
        """The key that an unknown key most likely means, of those that are not there already."""
        model, beside = model_at(path[:-1]), self._at(path[:-1])
        known = keys(model) if model else []
        there = beside if isinstance(beside, dict) else {}
        return nearest(str(path[-1]), [key for key in known if key not in there] or known)

    def _for_kind(self, path: Path) -> bool:
        """Does an unknown key of a source or sink stand where its kind should?"""
        model, beside = model_at(path[:-1]), self._at(path[:-1])
        if model is None or not issubclass(model, KindEntry) or any(key in model.kinds() for key in beside):
            return False
        return self._meant(path) in model.kinds() or isinstance(beside.get(path[-1]), dict)

    def unknown(self, path: Path) -> Finding:
        """A key that nothing reads."""
        key, model = str(path[-1]), model_at(path[:-1])
        if path[-2:] in _IMPOSSIBLE:
            message, why, fix = _IMPOSSIBLE[path[-2:]]
            return finding("MS002", message, self.places.key(*path), why=why, fix=fix)
        known = keys(model) if model else []
        near = self._meant(path)
        where = called(path[:-1]) if len(path) > 1 else "the spec"
        fix = f"write '{near}'" if near else f"remove it; known here: {', '.join(known)}"
        why = ""
        if model and issubclass(model, KindEntry) and self._for_kind(path):
            why = f"a {model.noun} is one of {', '.join(model.kinds())}"
            fix = f"write '{near}'" if near in model.kinds() else "name one of these"
            return finding(
                "MS002",
                f"there is no {model.noun} of kind '{key}'",
                self.places.key(*path),
                why=why,
                fix=fix,
            )
        if not near and (other := self._elsewhere(path, key)):
            why, fix = other
        return finding("MS002", f"{where} has no key '{key}'", self.places.key(*path), why=why, fix=fix)

    def _elsewhere(self, path: Path, key: str) -> tuple[str, str] | None:
        """Why and cure for a key that belongs into the kind's settings, or out of them."""
        model, outer = model_at(path[:-1]), model_at(path[:-2])
        if model and issubclass(model, KindEntry):
            named = next((name for name in self._at(path[:-1]) or () if name in model.kinds()), None)
            if named and key in fields(model.kinds()[named]):
                return f"'{key}' is a setting of {named}", f"move it into '{named}: {{…}}'"
        if outer and issubclass(outer, KindEntry) and key in fields(outer):
            return (
                f"'{key}' is said of the {outer.noun}, not of {path[-2]}",
                f"move it out, beside '{path[-2]}:'",
            )
        return None

    def _no_kind(self, path: Path, model: type[KindEntry]) -> Finding:
        """A source or sink that says no kind."""
        word = model.noun
        who = f"a sink of {called(path[:2])}" if len(path) > 2 else called(path)
        return finding(
            "MS008",
            f"{who} does not say which kind of {word} it is",
            self.places.key(*path),
            why=f"the kind is a key: 'KIND: {{…}}'; kinds of {word}: {', '.join(model.kinds())}",
            fix="add the kind with its settings",
        )

    def _name(self, path: Path) -> Finding:
        """A name that Spark would not take."""
        word = str(path[-1]) if path else ""
        plain = re.sub(r"\W+", "_", word, flags=re.ASCII)
        fix = f"write '{plain}'" if plain.isidentifier() else ""
        why = "a name begins with a letter and goes on with letters, digits and _"
        return finding("MS003", f"'{word}' cannot be a name", self.places.key(*path), why=why, fix=fix)

    def _missing(self, path: Path) -> Finding:
        """A key that must be there."""
        message = f"{called(path[:-1])} has no '{path[-1]}'"
        return finding(
            "MS004", message, self.places.key(*path[:-1]), why=reason(path), fix=f"add '{path[-1]}: …'"
        )

    def _wrong(self, path: Path, group: list[Error]) -> Finding:
        """A value that its key does not take."""
        error, value, span = group[0], self._at(path), self.places.value(*path)
        kind, context = error["type"], error.get("ctx") or {}
        if kind == "kinds":
            return finding(
                "MS008",
                f"{called(path)} {error['msg']}",
                span,
                fix="keep one of them, and make another entry",
            )
        wanted = list(
            dict.fromkeys(filter(None, (takes(one["type"], one.get("ctx") or {}) for one in group)))
        )
        if value is None and wanted:
            message = f"{called(path)} is empty"
            return finding("MS003", message, span, why=reason(path), fix=f"give it {' or '.join(wanted)}")
        if not wanted:
            message = (
                str(context["error"])
                if "error" in context
                else f"{called(path)} is not right: {error['msg']}"
            )
            return finding("MS003", hide(message, path, self.written).rstrip("."), span, why=reason(path))
        message = f"{called(path)} takes {' or '.join(wanted)}, not {given(path, value, self.written)}"
        return finding("MS003", message, span, why=reason(path), fix=_cure(kind, context, path, value))


def _cure(kind: str, context: Mapping[str, Any], path: Path, value: Any) -> str:
    """What to write instead, where that is clear."""
    if kind in ("enum", "literal_error") and isinstance(value, str):
        words = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        near = nearest(value, words)
        return f"write '{near}'" if near else ""
    if kind == "string_type" and isinstance(value, int | float):
        return f'put it in quotes: "{str(value).lower()}"'
    if kind.startswith("bool") and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return f"write {'true' if value.lower() in ('yes', 'on') else 'false'}"
    if kind in ("tuple_type", "list_type") and isinstance(value, str | int):
        return f"write {path[-1]}: [{value}]"
    return ""
