"""Check several targets in one process with one Spark session, started when a target first needs it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from millstream.checking.check import CheckResult, check, read_texts
from millstream.checking.given_columns import read_columns_file
from millstream.checking.process_confinement import Confinement, confine_process
from millstream.checking.syntax_check import find_syntax_error
from millstream.checking.targets import CheckTarget, TargetKind
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.spec_codes import ASKED, build_finding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.spec_file import LoadedSpec

# Settings of Spark SQL that Spark reads once at its start. All others can differ between sessions.
AT_START = ("spark.sql.extensions", "spark.sql.catalog", "spark.sql.warehouse.dir")

# A check ends before the JVM's second compiler pays off. The compiler takes half of the CPU time of a check of
# two queries, on cores that the check itself needs.
BRIEF = "-XX:TieredStopAtLevel=1"

_MASTER, _ONE_CORE = "spark.master", "local[1]"


# The exit code of a check that has found no error because it has checked no query.
NOTHING_JUDGED = 5


def find_exit_code(reports: Sequence[CheckReport]) -> int:
    """Return the exit code for several targets: the highest one, and 5 only if no target was checked at all."""
    codes = [report.exit_code for report in reports]
    if all(code in (0, NOTHING_JUDGED) for code in codes):
        return max(codes) if set(codes) == {NOTHING_JUDGED} else 0
    return max(code for code in codes if code != NOTHING_JUDGED)


def _silent(message: str) -> None:
    """Ignore the progress message."""


@dataclass(frozen=True)
class CheckReport:
    """The result of checking one target. `loaded` is its spec, if it has one."""

    target: CheckTarget
    checked: CheckResult
    loaded: LoadedSpec | None = None

    @property
    def exit_code(self) -> int:
        """Return 0 without errors, 1 with errors, 2 if the spec cannot be read, 4 if no server responded.

        4 is returned only if there is no other kind of error, and 5 if a script has no error because none of its
        queries was checked.
        """
        if self.checked.is_unreadable:
            return 2
        errors = {finding.code for finding in self.checked.findings if finding.severity is Severity.ERROR}
        if errors:
            return 4 if self.checked.is_unanswered and errors == {"MS560"} else 1
        return NOTHING_JUDGED if self.checked.has_judged_nothing else 0


@dataclass
class Checker:
    """Checks targets, each in a separate session. A context manager that stops Spark at the end.

    `load` reads a spec. `is_fast` checks without Spark, `connects` connects to the servers too. `arguments` are
    passed to a script. `columns` are the DDL of tables, paths and topics that only the user knows, by name. `say`
    receives progress messages.
    """

    load: Callable[[Path], LoadedSpec]
    is_fast: bool = False
    connects: bool = False
    arguments: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = _silent
    confines: bool = False
    """True to confine the process, because it runs scripts that are not trusted."""
    changes_files: bool = False
    """True if fixes are written into the files that are checked."""
    writable: Sequence[Path] = ()
    """Folders that a confined process may change, in addition to its own."""
    confinement: Confinement = field(default_factory=Confinement)
    """What the kernel does not hold, once Spark has started."""
    conf: dict[str, object] = field(default_factory=dict)
    compare: Callable[[SparkSession | None, LoadedSpec], Sequence[Finding]] = lambda *_: ()
    """Compares a spec without errors with its checkpoints; the session is None without Spark."""
    start: Callable[[Mapping[str, object]], SparkSession] | None = None
    """Returns a session of the caller, which is used in place of an own one and not stopped."""
    _spark: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

    def all(self, targets: Sequence[CheckTarget]) -> list[CheckReport]:
        """Return the reports of all targets, in their order."""
        specs = {target: self.load(target.path) for target in targets if target.kind is TargetKind.SPEC}
        for loaded in specs.values():
            self._reserve(loaded)
        return [self._report(target, specs.get(target)) for target in targets]

    def recheck(self, target: CheckTarget) -> CheckReport:
        """Read one target again and return its report."""
        return self.all([target])[0]

    def _reserve(self, loaded: LoadedSpec) -> None:
        """Collect the settings that Spark reads at its start. Has no effect once Spark has started."""
        settings = loaded.pipeline.spark if loaded.pipeline else {}
        self.conf |= {key: value for key, value in settings.items() if is_startup_setting(key)}

    def _report(self, target: CheckTarget, loaded: LoadedSpec | None) -> CheckReport:
        if loaded is None:
            return CheckReport(target, self._check_script(target))
        if self.is_fast or loaded.has_errors or loaded.pipeline is None:
            return self._compared(CheckReport(target, check(loaded, connect=self.connects), loaded), None)
        if self.connects:
            self.say(f"connecting to the servers of {target.name} ...")
            connected = check(loaded, connect=True)
            # A missing server or topic is known in a second. Spark needs twenty to add what it knows.
            if any(item.code in ASKED and item.severity is Severity.ERROR for item in connected.findings):
                return CheckReport(target, connected, loaded)
        from millstream.spark.session_scope import separate_session  # noqa: PLC0415 - a check without Spark does not load PySpark

        spark = self.spark()
        self.say(f"checking {target.name} with Spark ...")
        with separate_session(spark, _session_settings(loaded.pipeline.spark)) as session:
            checked = check(loaded, session, connect=self.connects)
            report = CheckReport(target, self._with_cluster_findings(checked, loaded, spark), loaded)
            return self._compared(report, session)

    def _compared(self, report: CheckReport, session: SparkSession | None) -> CheckReport:
        """Add to a report what has changed since the checkpoints of its queries were written."""
        if report.loaded is None or report.loaded.pipeline is None or report.checked.has_errors:
            return report
        report.checked.findings.extend(self.compare(session, report.loaded))
        return report

    def _with_cluster_findings(
        self, checked: CheckResult, loaded: LoadedSpec, spark: SparkSession
    ) -> CheckResult:
        """Add what the executors of the spec's cluster lack and what S3 refuses, if the check connects to systems."""
        if not self.connects or loaded.pipeline is None:
            return checked
        from millstream.frames.bucket_access import find_refusals  # noqa: PLC0415 - as above
        from millstream.frames.executor_requirements import find_lacks  # noqa: PLC0415 - as above

        place = loaded.places.key("spark", _MASTER)
        findings = [
            build_finding(
                "MS575",
                lack.what,
                place,
                fix=lack.fix,
                severity=Severity.ERROR if lack.is_fatal else Severity.WARNING,
            )
            for lack in find_lacks(spark, loaded.pipeline, tuple(loaded.pipeline.queries))
        ]
        findings += [
            build_finding(refusal.code, refusal.what, loaded.places.key(*path), fix=refusal.fix)
            for path, refusal in find_refusals(spark, loaded.pipeline, tuple(loaded.pipeline.queries))
        ]
        return replace(checked, findings=[*checked.findings, *findings])

    def _check_script(self, target: CheckTarget) -> CheckResult:
        """Run a script or a project, and check the calls that it makes to Spark."""
        broken = find_syntax_error(target.path) if target.kind is TargetKind.SCRIPT else None
        if broken is not None:
            return CheckResult([broken], (), [], (), read_texts([target.name], {}), judged=())
        from millstream.checking.scripts.check import check_project_at, check_script  # noqa: PLC0415 - as above, it loads PySpark

        spark = self.spark()
        known = {**read_columns_file(target.folder), **self.columns}
        self.say(f"running {target.name} with empty sources ...")
        if target.kind is TargetKind.PROJECT:
            return check_project_at(spark, target.path, known)
        return check_script(spark, target.path, self.arguments, known)

    def spark(self) -> SparkSession:
        """Return the Spark session of this process, started by the first call."""
        if self.start is not None:
            return self.start(self.conf)
        if self._spark is None:
            from millstream.spark.session import open_session  # noqa: PLC0415 - as above

            if self.confines:
                self._confine()
            self.say("starting Spark ...")
            # A check runs no batch, so one core is enough. Only what a cluster lacks must be asked there.
            master = self.conf.get(_MASTER, _ONE_CORE) if self.connects else _ONE_CORE
            conf = {"spark.driver.defaultJavaOptions": BRIEF, **self.conf, _MASTER: master}
            self._spark = open_session("millstream check", conf)
        return self._spark

    def _confine(self) -> None:
        """Leave the network and protect all files but the check's own, before the first thread starts."""
        from millstream.spark import settings  # noqa: PLC0415 - as above
        from millstream.spark.cache_folder import create_folder  # noqa: PLC0415 - as above
        from millstream.spark.conditional_writes.compiled_jar import ensure_s3_jars  # noqa: PLC0415 - as above
        from millstream.spark.jars.jar_cache import ensure_jars  # noqa: PLC0415 - as above
        from millstream.spark.java_discovery import find_java  # noqa: PLC0415 - as above

        # Jars are downloaded while there is a network, and a Java is found while its folder can be made.
        ensure_jars("spark")
        if settings.uses_s3(self.conf):
            ensure_s3_jars()
        find_java()
        folders = [create_folder(name) for name in ("checks", "archives", "logs")]
        os.environ["TMPDIR"] = tempfile.tempdir = str(folders[0])
        self.confinement = confine_process([*folders, *self.writable], files=not self.changes_files)


def is_startup_setting(key: str) -> bool:
    """Return whether Spark reads this setting only at its start. All others can differ between sessions."""
    return not key.startswith("spark.sql.") or key.startswith(AT_START)


def _session_settings(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if not is_startup_setting(key)}
