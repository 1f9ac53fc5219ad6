"""The steps of a test file, each to what happens and what must hold then."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.spec.duration import Duration
from millstream.testing.case import Action, Advance, Crash, Expected, Feed, Restart, Step
from millstream.testing.expectations import expected
from millstream.testing.form import StepForm
from millstream.testing.names import Names
from millstream.testing.rows import fed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.document import Path
    from millstream.pipeline.model import Pipeline
    from millstream.testing.ground import Ground
    from millstream.testing.specs import Laid, Specs

POINTS = ("before_sink", "after_sink")
_RESTART = "restart"


class Steps:
    """Reads the steps of one test. `pipeline` is None where it could not be loaded; then names go unchecked.

    With `filling`, an expectation that is left empty is one of no rows, to be written by `--update`.
    """

    def __init__(
        self,
        ground: Ground,
        specs: Specs,
        pipeline: Pipeline | None,
        query: str | None,
        laid: tuple[Laid, ...],
        *,
        filling: bool,
    ) -> None:
        self.ground, self.specs, self.laid, self.filling = ground, specs, laid, filling
        self.names = Names.of(pipeline, query)
        self.began = False

    def read(self, value: Any, path: Path) -> tuple[Step, ...]:
        """All steps of the list at a place."""
        items = self.ground.items("'steps'", value, path)
        if isinstance(value, list) and not items:
            self.ground.tell("MS003", "the test has no steps", path, fix="add one: '- feed: {…}'")
        found = [self.step(item, (*path, number)) for number, item in enumerate(items)]
        return tuple(step for step in found if step is not None)

    def step(self, item: Any, path: Path) -> Step | None:
        """One step, as far as it can be understood."""
        ground = self.ground
        if isinstance(item, str):
            if item == _RESTART:
                return Step((Restart(),), Expected(), ground.span(path))
            fix = (
                "write 'crash: after_sink'" if item == "crash" else f"write '{_RESTART}', or keys with values"
            )
            ground.not_this("a step that is one word", f"'{_RESTART}'", item, path, fix)
            return None
        if item is None or item == {}:
            ground.tell(
                "MS019", "the step does nothing and expects nothing", path, fix="remove it, or feed something"
            )
            return None
        before = len(ground.findings)
        said = ground.known("a step", item, path, StepForm)
        if not said and len(ground.findings) > before:
            return None
        actions = tuple(self.actions(said, path))
        wanted = expected(self.ground, self.names, said, path, filling=self.filling)
        if (
            not actions
            and not any(key.startswith("expect") for key in said)
            and len(ground.findings) == before
        ):
            ground.tell(
                "MS019", "the step does nothing and expects nothing", path, fix="remove it, or feed something"
            )
        where = ground.document.values.get(path) or ground.span(path)
        return Step(actions, wanted, where)

    def actions(self, said: Mapping[str, Any], path: Path) -> list[Action]:
        """What happens in a step, in the order in which it does."""
        found: list[Action] = []
        if "advance" in said:
            found += self.advance(said["advance"], (*path, "advance"))
        if _RESTART in said:
            if said[_RESTART] in (None, True):
                found.append(Restart())
            elif said[_RESTART] is not False:
                self.ground.not_this("'restart'", "nothing or true", said[_RESTART], (*path, _RESTART))
        if "restart_with" in said:
            found += self.restart_with(said["restart_with"], (*path, "restart_with"))
        if "feed" in said:
            found.append(self.feed(said["feed"], (*path, "feed")))
        if "crash" in said:
            found += self.crash(said["crash"], (*path, "crash"), fed="feed" in said)
        self.began = self.began or "feed" in said
        return found

    def advance(self, value: Any, path: Path) -> list[Action]:
        """The clock goes on."""
        try:
            return [Advance(timedelta(microseconds=Duration(value).micros))]
        except (ValueError, TypeError, OverflowError):
            self.ground.not_this("'advance'", "a length of time like 10 minutes", value, path)
            return []

    def restart_with(self, value: Any, path: Path) -> list[Action]:
        """A later version: from a file, or this one with values laid over it."""
        if isinstance(value, str):
            later = self.specs.at(value, path)
            told = f"with {value}"
        elif isinstance(value, dict) and value:
            laid = (*self.laid, *laid_over(self.ground, "'restart_with'", value, path))
            later = self.specs.own(laid)
            told = "with " + ", ".join(f"{key}: {_short(item)}" for key, item in value.items())
        else:
            self.ground.not_this("'restart_with'", "a path, or values to lay over the pipeline", value, path)
            return []
        if later is None:
            return []
        if self.names.query is not None and self.names.query not in later.queries:
            message = f"the later version has no query '{self.names.query}'"
            self.ground.absent(message, self.names.query, later.queries, path)
            return []
        # What follows in the test is of this version.
        self.names = Names.of(later, self.names.query)
        return [Restart(later, told)]

    def feed(self, value: Any, path: Path) -> Feed:
        """What arrives, by source."""
        found = {}
        for name, items in self.ground.mapping("'feed'", value, path).items():
            here = (*path, name)
            if self.names.pipeline is None or self.names.graph is None:
                continue
            entry = self.names.pipeline.sources.get(name)
            if entry is None:
                self.ground.absent(f"there is no source '{name}'", name, self.names.streams, here)
            elif entry.static:
                message = f"source '{name}' is static and takes no feed"
                self.ground.tell_key(
                    "MS018", message, here, fix=f"put its rows under 'static: {{{name}: […]}}'"
                )
            elif not self.names.feeds(name):
                message = f"query '{self.names.query}' does not read source '{name}'"
                self.ground.absent(message, name, self.names.streams, here)
            else:
                found[name] = fed(self.ground, name, entry, items, here)
        return Feed(found)

    def crash(self, value: Any, path: Path, *, fed: bool) -> list[Action]:
        """Where the run dies."""
        if not isinstance(value, str):
            self.ground.not_this("'crash'", "before_sink, after_sink or the name of a sink", value, path)
            return []
        known = [*POINTS, *self.names.sinks]
        if self.names.pipeline and value not in known:
            self.ground.absent(f"'crash' is at no point '{value}'", value, known, path, is_key=False)
            return []
        if not fed and not self.began:
            why = "a crash without a feed repeats the batch before"
            self.ground.tell(
                "MS019", "no batch has run that a crash could repeat", path, why=why, fix="feed first"
            )
        return [Crash(value)]


def laid_over(ground: Ground, who: str, value: Any, path: Path, prefix: str = "") -> tuple[Laid, ...]:
    """Values to lay over a spec, by keys with dots."""
    found: list[Laid] = []
    for key, item in ground.mapping(who, value, path).items():
        if "=" in key:
            ground.tell_key(
                "MS007", f"'{key}' is no key of a pipeline", (*path, key), fix="write keys with dots"
            )
        else:
            found.append((f"{prefix}{key}", item, (*path, key)))
    return tuple(found)


def _short(value: Any) -> str:
    """A value on a short line."""
    text = str(value)
    return text if len(text) <= 30 else f"{text[:29]}…"
