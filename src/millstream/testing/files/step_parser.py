"""Parse the steps of a test: the actions and expectations of each step."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.spec.duration import Duration
from millstream.testing.files.expectation_parser import parse_expectations
from millstream.testing.files.row_parser import parse_feed
from millstream.testing.files.schema import StepForm
from millstream.testing.files.scope import KnownNames
from millstream.testing.model import Action, Advance, Crash, Expected, Feed, Restart, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.load.document import Path
    from millstream.pipeline.model import Pipeline
    from millstream.testing.files.parse_context import ParseContext
    from millstream.testing.files.pipelines import Laid, Specs

POINTS = ("before_sink", "after_sink")
_RESTART = "restart"


class StepParser:
    """Parses the steps of one test. `pipeline` is None if it could not be loaded; then names are not checked.

    With `filling`, an empty expectation means no rows; `--update` fills it in.
    """

    def __init__(
        self,
        ground: ParseContext,
        specs: Specs,
        pipeline: Pipeline | None,
        query: str | None,
        laid: tuple[Laid, ...],
        *,
        filling: bool,
    ) -> None:
        self.ground, self.specs, self.laid, self.filling = ground, specs, laid, filling
        self.names = KnownNames.of(pipeline, query)
        self.began = False

    def read(self, value: Any, path: Path) -> tuple[Step, ...]:
        """Parse all steps of the list at a path."""
        items = self.ground.items("'steps'", value, path)
        if isinstance(value, list) and not items:
            self.ground.add_finding("MS003", "the test has no steps", path, fix="add one: '- feed: {…}'")
        steps = [self.step(item, (*path, number)) for number, item in enumerate(items)]
        return tuple(step for step in steps if step is not None)

    def step(self, item: Any, path: Path) -> Step | None:
        """Parse one step. Return None if it is not a step."""
        ground = self.ground
        if isinstance(item, str):
            if item == _RESTART:
                return Step((Restart(),), Expected(), ground.span(path))
            fix = "write 'crash: after_sink'" if item == "crash" else f"write '{_RESTART}', or a mapping"
            ground.add_type_finding("a step that is one word", f"'{_RESTART}'", item, path, fix)
            return None
        if item is None or item == {}:
            ground.add_finding(
                "MS019", "the step does nothing and expects nothing", path, fix="remove it, or feed something"
            )
            return None
        findings_before = len(ground.findings)
        settings = ground.drop_unknown_keys("a step", item, path, StepForm)
        if not settings and len(ground.findings) > findings_before:
            return None
        actions = tuple(self.actions(settings, path))
        expectations = parse_expectations(self.ground, self.names, settings, path, filling=self.filling)
        if (
            not actions
            and not any(key.startswith("expect") for key in settings)
            and len(ground.findings) == findings_before
        ):
            ground.add_finding(
                "MS019", "the step does nothing and expects nothing", path, fix="remove it, or feed something"
            )
        span = ground.document.values.get(path) or ground.span(path)
        return Step(actions, expectations, span)

    def actions(self, settings: Mapping[str, Any], path: Path) -> list[Action]:
        """Parse the actions of a step, in the order in which they run."""
        actions: list[Action] = []
        if "advance" in settings:
            actions += self.advance(settings["advance"], (*path, "advance"))
        if _RESTART in settings:
            if settings[_RESTART] in (None, True):
                actions.append(Restart())
            elif settings[_RESTART] is not False:
                self.ground.add_type_finding(
                    "'restart'", "nothing or true", settings[_RESTART], (*path, _RESTART)
                )
        if "restart_with" in settings:
            actions += self.restart_with(settings["restart_with"], (*path, "restart_with"))
        if "feed" in settings:
            actions.append(self.feed(settings["feed"], (*path, "feed")))
        if "crash" in settings:
            actions += self.crash(settings["crash"], (*path, "crash"), has_feed="feed" in settings)
        self.began = self.began or "feed" in settings
        return actions

    def advance(self, value: Any, path: Path) -> list[Action]:
        """Parse `advance`."""
        try:
            return [Advance(timedelta(microseconds=Duration(value).micros))]
        except (ValueError, TypeError, OverflowError):
            self.ground.add_type_finding("'advance'", "a length of time like 10 minutes", value, path)
            return []

    def restart_with(self, value: Any, path: Path) -> list[Action]:
        """Parse `restart_with`: the file of a later version, or overrides of this one."""
        if isinstance(value, str):
            later = self.specs.at(value, path)
            description = f"with {value}"
        elif isinstance(value, dict) and value:
            overrides = (*self.laid, *parse_overrides(self.ground, "'restart_with'", value, path))
            later = self.specs.load_pipeline(overrides)
            description = "with " + ", ".join(f"{key}: {_shorten(item)}" for key, item in value.items())
        else:
            self.ground.add_type_finding(
                "'restart_with'", "a path, or values that replace those of the pipeline", value, path
            )
            return []
        if later is None:
            return []
        if self.names.query is not None and self.names.query not in later.queries:
            message = f"the later version has no query '{self.names.query}'"
            self.ground.absent(message, self.names.query, later.queries, path)
            return []
        # The steps that follow use this version.
        self.names = KnownNames.of(later, self.names.query)
        return [Restart(later, description)]

    def feed(self, value: Any, path: Path) -> Feed:
        """Parse `feed`: the input rows by source."""
        rows_by_source = {}
        for name, items in self.ground.mapping("'feed'", value, path).items():
            source_path = (*path, name)
            if self.names.pipeline is None or self.names.graph is None:
                continue
            entry = self.names.pipeline.sources.get(name)
            if entry is None:
                self.ground.absent(f"there is no source '{name}'", name, self.names.streams, source_path)
            elif entry.static:
                message = f"source '{name}' is static and takes no feed"
                self.ground.add_key_finding(
                    "MS018", message, source_path, fix=f"put its rows under 'static: {{{name}: […]}}'"
                )
            elif not self.names.may_read(name):
                message = f"query '{self.names.query}' does not read source '{name}'"
                self.ground.absent(message, name, self.names.streams, source_path)
            else:
                rows_by_source[name] = parse_feed(self.ground, name, entry, items, source_path)
        return Feed(rows_by_source)

    def crash(self, value: Any, path: Path, *, has_feed: bool) -> list[Action]:
        """Parse `crash`: the point at which the query crashes."""
        if not isinstance(value, str):
            self.ground.add_type_finding(
                "'crash'", "before_sink, after_sink or the name of a sink", value, path
            )
            return []
        known = [*POINTS, *self.names.sinks]
        if self.names.pipeline and value not in known:
            self.ground.absent(f"there is no crash point '{value}'", value, known, path, is_key=False)
            return []
        if not has_feed and not self.began:
            reason = "a crash without a feed repeats the previous batch"
            self.ground.add_finding(
                "MS019",
                "the step crashes the query before any batch that could be repeated",
                path,
                why=reason,
                fix="feed first",
            )
        return [Crash(value)]


def parse_overrides(
    ground: ParseContext, label: str, value: Any, path: Path, prefix: str = ""
) -> tuple[Laid, ...]:
    """Parse values that replace those of a spec, by dotted keys."""
    overrides: list[Laid] = []
    for key, item in ground.mapping(label, value, path).items():
        if "=" in key:
            ground.add_key_finding(
                "MS007", f"'{key}' is not a key of a pipeline", (*path, key), fix="write keys with dots"
            )
        else:
            overrides.append((f"{prefix}{key}", item, (*path, key)))
    return tuple(overrides)


def _shorten(value: Any) -> str:
    """Shorten a value to 30 characters."""
    text = str(value)
    return text if len(text) <= 30 else f"{text[:29]}…"
