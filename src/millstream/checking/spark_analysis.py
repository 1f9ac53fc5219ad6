"""Analyse every view and query with Spark, without running them, and locate the errors in the spec."""

from __future__ import annotations

import logging
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import functions as F

from millstream.analysis.python import foreach_batch
from millstream.analysis.query.plan_model import BatchCode, PlannedQuery, PlannedSink
from millstream.checking.compat import error_parser
from millstream.checking.compat.start_check import RefusalCause, find_refusal
from millstream.checking.query_plan import SourceCall, operators, parse
from millstream.checking.query_plan.dataframe_calls import NotedCalls, disable_notes, note_calls, note_place
from millstream.checking.source_map import SpecPlaces
from millstream.checkpoint.remote.path import to_spark_path
from millstream.diagnostics.failure import MillstreamError
from millstream.diagnostics.spec_codes import build_finding
from millstream.frames.build_views import SOURCE_OPTION, build_view, read_source, with_expectations
from millstream.frames.decode import decode
from millstream.frames.stateful_view import ViewDeclarationError
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.load.loader import display_path
from millstream.pipeline.model import KeptColumn
from millstream.pipeline.spec_file import sort_findings
from millstream.pipeline.sql.references import parse_sql as read_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checking.compat.start_check import Refusal
    from millstream.connectors.api.sink import Sink
    from millstream.diagnostics.finding import Finding, Span
    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.pipeline.spec_file import LoadedSpec
    from millstream.spec.expectation import Expectation


@dataclass(frozen=True)
class AnalyzedPipeline:
    """The result of Spark's analysis of a pipeline."""

    findings: list[Finding]
    """Spark's findings, in file order."""
    queries: tuple[PlannedQuery, ...] = ()
    """The plans of the queries whose view could be built, in the spec's order."""


def list_spark_findings(spark: SparkSession, loaded: LoadedSpec) -> list[Finding]:
    """Return Spark's findings on a pipeline, in file order."""
    return analyse_pipeline(spark, loaded).findings


def analyse_pipeline(spark: SparkSession, loaded: LoadedSpec) -> AnalyzedPipeline:
    """Return Spark's findings on a pipeline and the plans of its queries. Start no query and connect to nothing.

    Streams are empty and have their declared schema and watermark. A static source without a declared schema
    is opened to read its columns. Views that depend on a broken one are skipped. Calls the user's functions once.
    """
    if loaded.pipeline is None:
        return AnalyzedPipeline([])
    with _quiet(), tempfile.TemporaryDirectory(prefix="millstream-check-") as empty:
        analysis = _Analysis(spark, loaded, loaded.pipeline, to_spark_path(Path(empty)))
        analysis.sources()
        analysis.views()
        analysis.queries()
        queries = tuple(analysis.planned())
    return AnalyzedPipeline(sort_findings(analysis.findings, loaded.places.file), queries)


def empty_reader(spark: SparkSession, folder: str, name: str, entry: SourceEntry) -> DataFrame:
    """Return a frame with a source's columns and no rows, read from an empty folder if the columns are declared."""
    ddl = entry.source.columns or (None if entry.source.has_payload else entry.ddl)
    if ddl is None:
        return read_source(spark, name, entry)
    if KeptColumn.HEADERS in entry.keep:
        ddl = f"{ddl}, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    if entry.source.columns is None:
        # Columns that a reader adds to the declared ones, to identify a malformed record.
        ddl = ", ".join([ddl, *(f"`{column}` STRING" for column in entry.source.place)])
    reader = spark.read if entry.static else spark.readStream
    return reader.option(SOURCE_OPTION, name).schema(ddl).json(folder)


@dataclass
class _Analysis:
    """Analyses a pipeline once: the frames that could be built, and the findings for the others."""

    spark: SparkSession
    loaded: LoadedSpec
    pipeline: Pipeline
    empty: str
    frames: dict[str, DataFrame] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = PipelineGraph.of(self.pipeline)
        self.where = SpecPlaces.of(self.pipeline, self.loaded.places)
        self.texts = {name: view.sql for name, view in self.pipeline.views.items() if view.sql is not None}

    def sources(self) -> None:
        """Build the frame of every source."""
        for name, entry in self.pipeline.sources.items():
            try:
                with disable_notes():
                    raw = empty_reader(self.spark, self.empty, name, entry)
                    frame = decode(self._with_expectations("sources", name, {}), name, raw)
                    if entry.expect:
                        expect = self._valid_expectations("sources", name, frame)
                        frame = decode(self._with_expectations("sources", name, expect), name, raw)
                self._register(name, frame)
            except (PySparkException, MillstreamError) as error:
                reason, why = error_parser.split_message(error)
                span, fix = self._place_in_source(name, error), error_parser.find_fix(error)
                self.findings.append(
                    build_finding("MS111", f"source '{name}': {reason}", span, why=why, fix=fix)
                )

    def _place_in_source(self, name: str, error: Exception) -> Span:
        """Return the span of the event-time column if Spark refuses that column, else of the source."""
        places, watermark = self.loaded.places, self.pipeline.sources[name].watermark
        if watermark is not None and isinstance(error, PySparkException):
            condition, refusal = error.getCondition() or "", error.getMessageParameters() or {}
            column = refusal.get("eventName") or refusal.get("objectName") or ""
            is_about_time = condition.startswith(("EVENT_TIME_IS_NOT_ON", "UNRESOLVED_COLUMN"))
            if is_about_time and column.strip("`") == watermark.event_time:
                return places.value("sources", name, "watermark", "event_time")
        return places.key("sources", name)

    def views(self) -> None:
        """Build every view whose inputs were built."""
        for name in self.graph.order:
            if name in self.graph.unknown or any(
                other not in self.frames for other in self.graph.reads[name]
            ):
                continue
            view = self.pipeline.views[name]
            if view.sql is not None and (read_sql(view.sql).denied or read_sql(view.sql).mistakes):
                # Spark runs a command as soon as it receives it. The rules have already refused this one.
                continue
            try:
                # Spark reports positions in SQL by itself, but does not know the lines of Python code.
                with (
                    note_calls(self.spark) if view.python is not None else self._noted_function(name) as note
                ):
                    frame = build_view(self.spark, self.pipeline, name, view, self.frames)
                self.where.calls.update(note.texts)
                if view.expect:
                    with disable_notes():
                        expect = self._valid_expectations("views", name, frame)
                        frame = with_expectations(self._with_expectations("views", name, expect), name, frame)
                self._register(name, frame)
            except (AnalysisException, ParseException) as error:
                self.findings.append(self._analysis_finding(name, error))
            except (PySparkException, MillstreamError) as error:
                self.findings.append(self._failure_finding(name, error))
            except Exception as error:
                # A user's function may raise anything. An error from SQL would be a bug in Millstream.
                if view.sql is not None:
                    raise
                self.findings.append(self._failure_finding(name, error))

    @contextmanager
    def _noted_function(self, name: str) -> Iterator[NotedCalls]:
        """Note the position and the name of a stateful function, because no line of Python calls it."""
        hook = self.pipeline.views[name].hook
        with ExitStack() as stack:
            if hook is not None:
                key, function = hook
                function_name = function.partition(":")[2] if isinstance(function, str) else function.__name__
                span = self.loaded.places.value("views", name, key)
                stack.enter_context(note_place(self.spark, f"{key}:{function_name}", span.file, span.line))
            yield NotedCalls()

    def queries(self) -> None:
        """Run Spark's checks on every query whose view was built."""
        for query, target in self.graph.writes.items():
            if target in self.frames:
                self.findings += self._start_findings(query, target)
                self.findings += self._condition_findings(query, target)

    def _condition_findings(self, query: str, target: str) -> Iterator[Finding]:
        """Yield a finding for each invalid delete condition, which would otherwise fail in the first batch."""
        for number, entry in enumerate(self.pipeline.queries[query].to):
            if entry.sink.delete_marker is None:
                continue
            setting, condition = entry.sink.delete_marker
            try:
                self.frames[target].where(condition)
            except (AnalysisException, ParseException) as error:
                reason, why = error_parser.split_message(error)
                sink, has = ("queries", query, "to", number, "sink"), self.loaded.places.has
                place = next(
                    (path for path in ((*sink, setting), (*sink, "cdc", setting)) if has(*path)), sink
                )
                yield build_finding(
                    "MS111",
                    f"{setting} of query '{query}': {reason}",
                    self.loaded.places.value(*place),
                    why=why,
                    fix=error_parser.find_fix(error),
                    query=query,
                )

    def planned(self) -> Iterator[PlannedQuery]:
        """Yield the plan of each query whose view was built."""
        settings = {key: str(value) for key, value in self.pipeline.spark.items()}
        for name, target in self.graph.writes.items():
            if target in self.frames:
                yield self._plan(name, target, settings)

    def _plan(self, name: str, target: str, settings: dict[str, str]) -> PlannedQuery:
        query, places = self.pipeline.queries[name], self.loaded.places
        is_mode_set = places.has("queries", name, "output_mode")
        sinks = (
            PlannedSink(
                name=entry.sink.describe(),
                kind=entry.sink.kind,
                # If no row replaces another, as in a topic in append mode, the key identifies no row of the sink.
                key=entry.sink.row_key if entry.sink.replaces_table(query.output_mode) else (),
                routed_by=entry.sink.routed_by,
                span=places.key("queries", name, "to", number, "sink"),
                function=self._function_code(entry.sink),
            )
            for number, entry in enumerate(query.to)
        )
        return PlannedQuery(
            name=name,
            root=operators(self.frames[target], self.where, query.output_mode),
            output_mode=query.output_mode,
            trigger=self.pipeline.trigger(name),
            sinks=tuple(sinks),
            span=places.key("queries", name),
            mode_span=places.value("queries", name, "output_mode") if is_mode_set else None,
            spark=settings,
        )

    def _function_code(self, sink: Sink) -> BatchCode | None:
        """Return the analysed source code of the sink's function, which is not run."""
        codes = (
            foreach_batch.read_reference(
                function, self.pipeline.folder, lambda path: str(display_path(Path(path)))
            )
            for function in sink.functions().values()
        )
        return next((code for code in codes if code is not None), None)

    def _register(self, name: str, frame: DataFrame) -> None:
        """Register a frame as a temporary view, so that plans built on it contain its name."""
        frame.createOrReplaceTempView(name)
        self.frames[name] = self.spark.table(name)

    def _valid_expectations(self, section: str, name: str, frame: DataFrame) -> dict[str, Expectation]:
        """Return the expectations that Spark can evaluate, and add a finding for each of the others."""
        valid = {}
        for label, expectation in self.pipeline.expected(name).items():
            try:
                frame.where(F.expr(expectation.that))
                valid[label] = expectation
            except (AnalysisException, ParseException) as error:
                reason, why = error_parser.split_message(error)
                place = (section, name, "expect", label)
                condition = (*place, "that") if self.loaded.places.has(*place, "that") else place
                self.findings.append(
                    build_finding(
                        "MS111",
                        f"expectation '{label}' of {section[:-1]} '{name}': {reason}",
                        self.loaded.places.value(*condition),
                        why=why,
                        fix=error_parser.find_fix(error),
                        query=self._query(name),
                    )
                )
        return valid

    def _with_expectations(self, section: str, name: str, expect: dict[str, Expectation]) -> Pipeline:
        """Return the pipeline with other expectations for this source or view."""
        entries = getattr(self.pipeline, section)
        changed = entries[name].model_copy(update={"expect": expect})
        return self.pipeline.model_copy(update={section: {**entries, name: changed}})

    def _analysis_finding(self, name: str, error: PySparkException) -> Finding:
        """Return the finding for a view that Spark cannot analyse."""
        query = self._query(name)
        reason, why = error_parser.split_message(error)
        if self.pipeline.views[name].sql is None:
            return self._failure_finding(name, error)
        start, stop = error_parser.error_range(error, self.texts[name])
        span = self.loaded.places.sql(name, start, stop)
        return build_finding(
            "MS111", f"view '{name}': {reason}", span, why=why, fix=error_parser.find_fix(error), query=query
        )

    def _failure_finding(self, name: str, error: Exception) -> Finding:
        """Return the finding for a view whose function fails or does not return a DataFrame."""
        view = self.pipeline.views[name]
        places = self.loaded.places
        if isinstance(error, ViewDeclarationError):
            span = places.value("views", name, *error.path)
            return build_finding("MS112", error.what, span, fix=error.fix, query=self._query(name))
        reference = view.hook[1] if view.hook else None
        place = error_parser.locate_in_function(error, reference, self.pipeline)
        span = place or places.value("views", name)
        reason, why = error_parser.split_message(error)
        fix = error.fix if isinstance(error, MillstreamError) else error_parser.find_fix(error)
        message = reason if reason.startswith(f"view '{name}'") else f"view '{name}': {reason}"
        return build_finding("MS112", message, span, why=why, fix=fix, query=self._query(name))

    def _start_findings(self, query: str, target: str) -> Iterator[Finding]:
        """Yield the refusal of `start()`, located at the operator, the output mode or the trigger."""
        mode, trigger = self.pipeline.queries[query].output_mode, self.pipeline.trigger(query)
        reason = find_refusal(self.frames[target], mode, trigger)
        if reason is None:
            return
        message = f"query '{query}' {reason.about(mode, trigger)}"
        span, label = self._place(reason, query)
        yield build_finding("MS311", message, span, label=label, why=reason.why, fix=reason.fix, query=query)

    def _place(self, refusal: Refusal, query: str) -> tuple[Span | None, str]:
        """Return the span of the operator in a view, else of the trigger, output mode or query in the spec."""
        places = self.loaded.places
        if position := error_parser.locate_operator(refusal.node, self.texts):
            view, start, stop = position
            return places.sql(view, start, stop), f"in view '{view}'"
        call = parse(str(refusal.node.origin().toString())) if refusal.node is not None else None
        # A call outside of a Python file is a function that the spec declares: its settings are the cause.
        if isinstance(call, SourceCall) and Path(call.file).suffix == ".py":
            return self.where.call(call), "this call"
        setting = "trigger" if refusal.cause is RefusalCause.TRIGGER else "output_mode"
        if places.has("queries", query, setting):
            return places.value("queries", query, setting), ""
        return places.key("queries", query), ""

    def _query(self, name: str) -> str | None:
        writes = self.graph.writes
        return next((query for query in writes if name in self.graph.behind(writes[query])), None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress stack traces on the terminal for errors that become findings."""
    # Created as Spark creates them: its own calls fail on a plain logger.
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
