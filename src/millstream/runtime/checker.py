"""Check several targets in one process: one Spark for all, started when the first needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from millstream.diagnostics.finding import Severity
from millstream.runtime.checking import Checked, check
from millstream.runtime.targets import Kind, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.pipeline.load import Loaded

# Settings of Spark's SQL that are read once, at its start; all others can differ from session to session.
AT_START = ("spark.sql.extensions", "spark.sql.catalog", "spark.sql.warehouse.dir")

# A check is over before the JVM's second compiler has earned what it costs: it is half of the CPU of a check of
# two queries, on cores that the check itself wants.
BRIEF = "-XX:TieredStopAtLevel=1"


def _silent(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Report:
    """What a check found in one target; `loaded` is its spec, where it has one."""

    target: Target
    checked: Checked
    loaded: Loaded | None = None

    @property
    def exit_code(self) -> int:
        """0 when there is no error, 1 when there is one, 2 when the spec cannot be read, 4 when nobody answered.

        4 only where there is no other error than that.
        """
        if self.checked.unreadable:
            return 2
        errors = {one.code for one in self.checked.findings if one.severity is Severity.ERROR}
        return (4 if self.checked.silent and errors == {"MS560"} else 1) if errors else 0


@dataclass
class Checker:
    """Checks targets, each in a session of its own; a context manager that ends Spark.

    `load` reads a spec. `fast` leaves Spark out, `connect` asks the
    servers too. `arguments` are a script's. `say` gets what is being waited for.
    """

    load: Callable[[Path], Loaded]
    fast: bool = False
    connect: bool = False
    arguments: Sequence[str] = ()
    say: Callable[[str], None] = _silent
    conf: dict[str, object] = field(default_factory=dict)
    _spark: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

    def all(self, targets: Sequence[Target]) -> list[Report]:
        """The reports of all targets, in their order."""
        specs = {target: self.load(target.path) for target in targets if target.kind is Kind.SPEC}
        for loaded in specs.values():
            self._reserve(loaded)
        return [self._report(target, specs.get(target)) for target in targets]

    def again(self, target: Target) -> Report:
        """The report of one target, read afresh."""
        return self.all([target])[0]

    def _reserve(self, loaded: Loaded) -> None:
        """Keep what Spark must know at its start; too late when it has started."""
        settings = loaded.pipeline.spark if loaded.pipeline else {}
        self.conf |= {key: value for key, value in settings.items() if at_start(key)}

    def _report(self, target: Target, loaded: Loaded | None) -> Report:
        if loaded is None:
            return Report(target, self._foreign(target))
        if self.fast or loaded.failed or loaded.pipeline is None:
            return Report(target, check(loaded, connect=self.connect), loaded)
        from millstream.runtime.lending import lent  # noqa: PLC0415 - a check without Spark does not load PySpark

        spark = self.spark()
        self.say(f"asking Spark about {target.name} ...")
        with lent(spark, _later(loaded.pipeline.spark)) as session:
            return Report(target, check(loaded, session, connect=self.connect), loaded)

    def _foreign(self, target: Target) -> Checked:
        """A script or a project: it is run, and what it asks of Spark is judged."""
        from millstream.runtime.scripts.check import check_script  # noqa: PLC0415 - as above, it loads PySpark

        spark = self.spark()
        self.say(f"running {target.name} without its sources ...")
        return check_script(spark, target.path, self.arguments)

    def spark(self) -> SparkSession:
        """The Spark of this process, started by the first call."""
        if self._spark is None:
            from millstream.runtime.session import open_session  # noqa: PLC0415 - as above

            self.say("starting Spark ...")
            # A check runs no batch: one core is enough.
            conf = {"spark.driver.defaultJavaOptions": BRIEF, **self.conf, "spark.master": "local[1]"}
            self._spark = open_session("millstream check", conf)
        return self._spark


def at_start(key: str) -> bool:
    """Does Spark take that setting at its start only? All others can differ from session to session."""
    return not key.startswith("spark.sql.") or key.startswith(AT_START)


def _later(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if not at_start(key)}
