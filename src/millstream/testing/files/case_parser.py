"""Parse the tests of a test file into `Case` values, one per test or one per row of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.testing.files.parametrize import fill_placeholders, find_placeholders, name_case
from millstream.testing.files.row_parser import check_row, column_types, parse_rows, parse_time
from millstream.testing.files.schema import CaseForm
from millstream.testing.files.step_parser import StepParser, parse_overrides
from millstream.testing.model import Case

if TYPE_CHECKING:
    from pathlib import Path as File

    from millstream.pipeline.load.document import Path
    from millstream.pipeline.model import Pipeline
    from millstream.testing.files.parse_context import ParseContext
    from millstream.testing.files.pipelines import Laid, Specs
    from millstream.testing.model import Row

_TABLE = "table"


class Cases:
    """Parses the tests of one file."""

    def __init__(self, ground: ParseContext, specs: Specs, file: File, *, filling: bool) -> None:
        self.ground, self.specs, self.file, self.filling = ground, specs, file, filling

    def read(self, value: Any) -> list[Case]:
        """Parse all tests under the key `tests`."""
        ground, path = self.ground, ("tests",)
        cases: list[Case] = []
        tests = ground.mapping("'tests'", value, path)
        if isinstance(value, dict) and not tests:
            ground.add_finding(
                "MS003", "'tests' has no test", path, fix="add one: 'a late click is dropped: {steps: […]}'"
            )
        for name, test in tests.items():
            here: Path = (*path, name)
            if not isinstance(test, dict):
                ground.add_type_finding(f"test '{name}'", "a mapping", test, here)
                continue
            settings = ground.drop_unknown_keys(f"test '{name}'", test, here, CaseForm)
            cases += [
                case for row in self.table(settings, here) if (case := self.case(name, settings, row, here))
            ]
        return cases

    def table(self, settings: dict[str, Any], path: Path) -> list[dict[str, Any] | None]:
        """Parse the rows of a test's table. Return `[None]` if the test has no table."""
        ground, here = self.ground, (*path, _TABLE)
        within = {key: value for key, value in settings.items() if key != _TABLE}
        used = list(find_placeholders(within, path))
        if _TABLE not in settings:
            for placeholder in used:
                message = f"no table defines '{placeholder.name}'"
                ground.add_finding(
                    "MS020",
                    message,
                    placeholder.path,
                    fix=f"add 'table: [{{{placeholder.name}: …}}]', or write $${{…}}",
                )
            return [None]
        items = ground.items("'table'", settings[_TABLE], here)
        if isinstance(settings[_TABLE], list) and not items:
            ground.add_finding("MS003", "'table' has no row", here, fix="add one: '- {name: value}'")
        table_rows: list[dict[str, Any] | None] = []
        for number, row in enumerate(items):
            if not isinstance(row, dict) or not row:
                ground.add_type_finding("a row of the table", "names with values", row, (*here, number))
                continue
            table_rows.append(row)
        names = list(dict.fromkeys(name for row in table_rows if row for name in row))
        for placeholder in used:
            if table_rows and placeholder.name not in names:
                fix = f"name one of {', '.join(names)}, or write $${{…}} for the text itself"
                ground.add_finding(
                    "MS020", f"the table has no column '{placeholder.name}'", placeholder.path, fix=fix
                )
        for number, row in enumerate(items):
            for name in names if isinstance(row, dict) and row else ():
                if name not in row and any(placeholder.name == name for placeholder in used):
                    ground.add_finding("MS020", f"this row of the table has no '{name}'", (*here, number))
        return table_rows

    def case(
        self, name: str, settings: dict[str, Any], row: dict[str, Any] | None, path: Path
    ) -> Case | None:
        """Parse one test for one row of its table. Return None if the test cannot run."""
        ground = self.ground
        case_name = name
        # `$$` is a dollar in any test, with a table or without.
        settings = {
            key: fill_placeholders(value, row or {}) for key, value in settings.items() if key != _TABLE
        }
        if row is not None:
            case_name = name_case(name, row)
        if "steps" not in settings:
            fix = "add 'steps: [{feed: {…}}]'"
            ground.add_key_finding("MS004", f"test '{name}' has no 'steps'", path, fix=fix)
            return None
        overrides = self.laid(settings, path)
        pipeline = self.specs.load_pipeline(overrides)
        query = self.query(settings, pipeline, path)
        parser = StepParser(ground, self.specs, pipeline, query, overrides, filling=self.filling)
        parsed_steps = parser.read(settings["steps"], (*path, "steps"))
        static = (
            self.static(settings.get("static"), pipeline, (*path, "static")) if "static" in settings else {}
        )
        now = (
            parse_time(ground, "'now'", settings["now"], (*path, "now"))
            if settings.get("now") is not None
            else None
        )
        real, tolerance = self.has_real_sinks(settings, path), self.tolerance(settings, path)
        if pipeline is None or query is None:
            return None
        span = ground.key(path)
        return Case(case_name, pipeline, query, parsed_steps, self.file, span, static, now, real, tolerance)

    def laid(self, settings: dict[str, Any], path: Path) -> tuple[Laid, ...]:
        """Return the overrides of pipeline values in `params` and `set`."""
        overrides: list[Laid] = []
        if settings.get("params") is not None:
            here = (*path, "params")
            params = parse_overrides(self.ground, "'params'", settings["params"], here)
            pipeline = self.specs.load_pipeline() if params else None
            for key, value, value_path in params:
                if pipeline and key not in pipeline.params:
                    self.ground.absent(
                        f"the pipeline has no parameter '{key}'", key, pipeline.params, value_path
                    )
                elif not isinstance(value, str | int | float):
                    self.ground.add_type_finding(
                        f"parameter '{key}'", "text, a number, or true or false", value, value_path
                    )
                else:
                    overrides.append((f"params.{key}", value, value_path))
        if settings.get("set") is not None:
            overrides += parse_overrides(self.ground, "'set'", settings["set"], (*path, "set"))
        return tuple(overrides)

    def query(self, settings: dict[str, Any], pipeline: Pipeline | None, path: Path) -> str | None:
        """Return the name of the query under test, or None after a finding."""
        name = settings.get("query")
        if name is None:
            if pipeline is None or len(pipeline.queries) == 1:
                return next(iter(pipeline.queries)) if pipeline else None
            known = ", ".join(pipeline.queries)
            self.ground.add_key_finding(
                "MS004",
                "the test does not name its query",
                path,
                fix=f"add 'query: …', one of {known}",
            )
        elif not isinstance(name, str):
            self.ground.add_type_finding("'query'", "the name of a query", name, (*path, "query"))
        elif pipeline is not None and name not in pipeline.queries:
            message = f"there is no query '{name}'"
            self.ground.absent(message, name, pipeline.queries, (*path, "query"), is_key=False)
        else:
            return name
        return None

    def static(self, value: Any, pipeline: Pipeline | None, path: Path) -> dict[str, tuple[Row, ...]]:
        """Parse the rows of static sources."""
        tables = {}
        for name, items in self.ground.mapping("'static'", value, path).items():
            here = (*path, name)
            entry = pipeline.sources.get(name) if pipeline else None
            if pipeline is not None and entry is None:
                known = [source_name for source_name, source in pipeline.sources.items() if source.static]
                self.ground.absent(f"there is no source '{name}'", name, known, here)
                continue
            if entry is not None and not entry.static:
                message = f"source '{name}' is a stream, not a static table"
                self.ground.add_key_finding(
                    "MS018", message, here, fix=f"feed it in a step: 'feed: {{{name}: […]}}'"
                )
                continue
            tables[name] = parse_rows(self.ground, f"source '{name}'", items, here)
            for number, row in enumerate(items if isinstance(items, list) else ()):
                if entry is not None and isinstance(row, dict):
                    check_row(self.ground, f"source '{name}'", column_types(entry), row, (*here, number))
        return tables

    def has_real_sinks(self, settings: dict[str, Any], path: Path) -> bool:
        """Return whether the query's own writers write."""
        value = settings.get("sinks", "collected")
        if value not in ("collected", "real"):
            self.ground.add_type_finding("'sinks'", "collected or real", value, (*path, "sinks"))
        return bool(value == "real")

    def tolerance(self, settings: dict[str, Any], path: Path) -> float:
        """Return the allowed relative error of a floating-point number."""
        value = settings.get("tolerance", 1e-9)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        self.ground.add_type_finding("'tolerance'", "a number from 0 to 1", value, (*path, "tolerance"))
        return 0.0
