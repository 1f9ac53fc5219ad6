"""The tests of a test file as values, each once or once for each row of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.testing.case import Case
from millstream.testing.form import CaseForm
from millstream.testing.rows import held, kinds, rows, time
from millstream.testing.steps import Steps, laid_over
from millstream.testing.tables import filled, named, placeholders

if TYPE_CHECKING:
    from pathlib import Path as File

    from millstream.pipeline.document import Path
    from millstream.pipeline.model import Pipeline
    from millstream.testing.case import Row
    from millstream.testing.ground import Ground
    from millstream.testing.specs import Laid, Specs

_TABLE = "table"


class Cases:
    """Reads the tests of one file."""

    def __init__(self, ground: Ground, specs: Specs, file: File, *, filling: bool) -> None:
        self.ground, self.specs, self.file, self.filling = ground, specs, file, filling

    def read(self, value: Any) -> list[Case]:
        """All tests under the key `tests`."""
        ground, path = self.ground, ("tests",)
        found: list[Case] = []
        tests = ground.mapping("'tests'", value, path)
        if isinstance(value, dict) and not tests:
            ground.tell(
                "MS003", "'tests' has no test", path, fix="add one: 'a late click is dropped: {steps: […]}'"
            )
        for name, given in tests.items():
            here: Path = (*path, name)
            if not isinstance(given, dict):
                ground.not_this(f"test '{name}'", "keys with values", given, here)
                continue
            said = ground.known(f"test '{name}'", given, here, CaseForm)
            found += [case for row in self.table(said, here) if (case := self.case(name, said, row, here))]
        return found

    def table(self, said: dict[str, Any], path: Path) -> list[dict[str, Any] | None]:
        """The rows of a test's table; one that is no row where it has none."""
        ground, here = self.ground, (*path, _TABLE)
        within = {key: value for key, value in said.items() if key != _TABLE}
        used = list(placeholders(within, path))
        if _TABLE not in said:
            for one in used:
                message = f"there is no table that gives '{one.name}'"
                ground.tell(
                    "MS020", message, one.path, fix=f"add 'table: [{{{one.name}: …}}]', or write $${{…}}"
                )
            return [None]
        given = ground.items("'table'", said[_TABLE], here)
        if isinstance(said[_TABLE], list) and not given:
            ground.tell("MS003", "'table' has no row", here, fix="add one: '- {name: value}'")
        found: list[dict[str, Any] | None] = []
        for number, row in enumerate(given):
            if not isinstance(row, dict) or not row:
                ground.not_this("a row of the table", "names with values", row, (*here, number))
                continue
            found.append(row)
        names = list(dict.fromkeys(name for row in found if row for name in row))
        for one in used:
            if found and one.name not in names:
                fix = f"name one of {', '.join(names)}, or write $${{…}} for the text itself"
                ground.tell("MS020", f"the table gives no '{one.name}'", one.path, fix=fix)
        for number, row in enumerate(given):
            for name in names if isinstance(row, dict) and row else ():
                if name not in row and any(one.name == name for one in used):
                    ground.tell("MS020", f"this row of the table gives no '{name}'", (*here, number))
        return found

    def case(self, name: str, said: dict[str, Any], row: dict[str, Any] | None, path: Path) -> Case | None:
        """One test, for one row of its table; None when there is nothing to play."""
        ground = self.ground
        called = name
        # `$$` is a dollar in any test, with a table or without.
        said = {key: filled(value, row or {}) for key, value in said.items() if key != _TABLE}
        if row is not None:
            called = named(name, row)
        if "steps" not in said:
            fix = "add 'steps: [{feed: {…}}]'"
            ground.tell_key("MS004", f"test '{name}' has no 'steps'", path, fix=fix)
            return None
        laid = self.laid(said, path)
        pipeline = self.specs.own(laid)
        query = self.query(said, pipeline, path)
        steps = Steps(ground, self.specs, pipeline, query, laid, filling=self.filling)
        read = steps.read(said["steps"], (*path, "steps"))
        static = self.static(said.get("static"), pipeline, (*path, "static")) if "static" in said else {}
        now = time(ground, "'now'", said["now"], (*path, "now")) if said.get("now") is not None else None
        real, tolerance = self.real(said, path), self.tolerance(said, path)
        if pipeline is None or query is None:
            return None
        where = ground.key(path)
        return Case(called, pipeline, query, read, self.file, where, static, now, real, tolerance)

    def laid(self, said: dict[str, Any], path: Path) -> tuple[Laid, ...]:
        """What `params` and `set` lay over the pipeline."""
        found: list[Laid] = []
        if said.get("params") is not None:
            here = (*path, "params")
            given = laid_over(self.ground, "'params'", said["params"], here)
            pipeline = self.specs.own() if given else None
            for key, value, place in given:
                if pipeline and key not in pipeline.params:
                    self.ground.absent(f"the pipeline has no parameter '{key}'", key, pipeline.params, place)
                elif not isinstance(value, str | int | float):
                    self.ground.not_this(
                        f"parameter '{key}'", "text, a number, or true or false", value, place
                    )
                else:
                    found.append((f"params.{key}", value, place))
        if said.get("set") is not None:
            found += laid_over(self.ground, "'set'", said["set"], (*path, "set"))
        return tuple(found)

    def query(self, said: dict[str, Any], pipeline: Pipeline | None, path: Path) -> str | None:
        """The query that is played."""
        name = said.get("query")
        if name is None:
            if pipeline is None or len(pipeline.queries) == 1:
                return next(iter(pipeline.queries)) if pipeline else None
            known = ", ".join(pipeline.queries)
            self.ground.tell_key(
                "MS004",
                "the test does not say which query it plays",
                path,
                fix=f"add 'query: …', one of {known}",
            )
        elif not isinstance(name, str):
            self.ground.not_this("'query'", "the name of a query", name, (*path, "query"))
        elif pipeline is not None and name not in pipeline.queries:
            message = f"there is no query '{name}'"
            self.ground.absent(message, name, pipeline.queries, (*path, "query"), is_key=False)
        else:
            return name
        return None

    def static(self, value: Any, pipeline: Pipeline | None, path: Path) -> dict[str, tuple[Row, ...]]:
        """The rows of static sources."""
        found = {}
        for name, items in self.ground.mapping("'static'", value, path).items():
            here = (*path, name)
            entry = pipeline.sources.get(name) if pipeline else None
            if pipeline is not None and entry is None:
                known = [one for one, source in pipeline.sources.items() if source.static]
                self.ground.absent(f"there is no source '{name}'", name, known, here)
                continue
            if entry is not None and not entry.static:
                message = f"source '{name}' is a stream, not a static table"
                self.ground.tell_key(
                    "MS018", message, here, fix=f"feed it in a step: 'feed: {{{name}: […]}}'"
                )
                continue
            found[name] = rows(self.ground, f"source '{name}'", items, here)
            for number, row in enumerate(items if isinstance(items, list) else ()):
                if entry is not None and isinstance(row, dict):
                    held(self.ground, f"source '{name}'", kinds(entry), row, (*here, number))
        return found

    def real(self, said: dict[str, Any], path: Path) -> bool:
        """Do the query's own writers write?"""
        value = said.get("sinks", "collected")
        if value not in ("collected", "real"):
            self.ground.not_this("'sinks'", "collected or real", value, (*path, "sinks"))
        return bool(value == "real")

    def tolerance(self, said: dict[str, Any], path: Path) -> float:
        """How far a floating-point number may be off."""
        value = said.get("tolerance", 1e-9)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        self.ground.not_this("'tolerance'", "a number from 0 to 1", value, (*path, "tolerance"))
        return 0.0
