"""Phase B of a check: Spark's verdict on every view and query, at its place in the spec, with nothing run."""

from __future__ import annotations

import logging
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import functions as F

from millstream.analysis import batch_code
from millstream.analysis.dataflow import BatchCode, PlannedQuery, PlannedSink
from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.failure import MillstreamError
from millstream.pipeline.graph import Graph
from millstream.pipeline.load import in_file_order
from millstream.pipeline.loaded import shown
from millstream.pipeline.model import Keep
from millstream.pipeline.sql import read as read_sql
from millstream.runtime import complaints
from millstream.runtime.assemble import SOURCE_OPTION, held, make, read
from millstream.runtime.decode import decode
from millstream.runtime.judging import Cause, refusal
from millstream.runtime.planning import Call, operators, parse
from millstream.runtime.planning.callsites import Noted, noted, placed, unnoted
from millstream.runtime.spec_places import SpecPlaces
from millstream.runtime.stateful import Misdeclared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.sink import Sink
    from millstream.diagnostics.finding import Finding, Span
    from millstream.pipeline.load import Loaded
    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.runtime.judging import Refusal
    from millstream.spec.expectation import Expectation


@dataclass(frozen=True)
class Examined:
    """What Spark says of a pipeline, and what its queries do."""

    findings: list[Finding]
    """In file order."""
    queries: tuple[PlannedQuery, ...] = ()
    """The queries whose view could be made, in the spec's order."""


def phase_b(spark: SparkSession, loaded: Loaded) -> list[Finding]:
    """What Spark says of a pipeline, in file order."""
    return examine(spark, loaded).findings


def examine(spark: SparkSession, loaded: Loaded) -> Examined:
    """What Spark says of a pipeline, and the plans of its queries. Nothing connects and no query starts.

    Streams are empty and have their declared schema and watermark; a static source without a declared schema
    is opened for its columns. Views behind a broken one are not judged. Calls the user's functions once.
    """
    if loaded.pipeline is None:
        return Examined([])
    with _quiet(), tempfile.TemporaryDirectory(prefix="millstream-check-") as empty:
        judge = _Judge(spark, loaded, loaded.pipeline, empty)
        judge.sources()
        judge.views()
        judge.queries()
        queries = tuple(judge.planned())
    return Examined(in_file_order(judge.findings, loaded.places.file), queries)


def empty_reader(spark: SparkSession, folder: str, name: str, entry: SourceEntry) -> DataFrame:
    """The columns of a source with no rows, from an empty folder where the columns are known beforehand."""
    ddl = entry.source.columns or (None if entry.source.payload else entry.ddl)
    if ddl is None:
        return read(spark, name, entry)
    if Keep.HEADERS in entry.keep:
        ddl = f"{ddl}, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    if entry.source.columns is None:
        # What a reader adds to the declared columns, and a malformed record is named by.
        ddl = ", ".join([ddl, *(f"`{column}` STRING" for column in entry.source.place)])
    reader = spark.read if entry.static else spark.readStream
    return reader.option(SOURCE_OPTION, name).schema(ddl).json(folder)


@dataclass
class _Judge:
    """One pass over a pipeline: frames as far as they could be made, and what was wrong with the others."""

    spark: SparkSession
    loaded: Loaded
    pipeline: Pipeline
    empty: str
    frames: dict[str, DataFrame] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = Graph.of(self.pipeline)
        self.where = SpecPlaces.of(self.pipeline, self.loaded.places)
        self.texts = {name: view.sql for name, view in self.pipeline.views.items() if view.sql is not None}

    def sources(self) -> None:
        """Make every source."""
        for name, entry in self.pipeline.sources.items():
            try:
                with unnoted():
                    raw = empty_reader(self.spark, self.empty, name, entry)
                    frame = decode(self._expecting("sources", name, {}), name, raw)
                    if entry.expect:
                        expect = self._analysed("sources", name, frame)
                        frame = decode(self._expecting("sources", name, expect), name, raw)
                self._keep(name, frame)
            except (PySparkException, MillstreamError) as wrong:
                span = self.loaded.places.key("sources", name)
                what, why = complaints.words(wrong)
                self.findings.append(finding("MS111", f"source '{name}': {what}", span, why=why))

    def views(self) -> None:
        """Make every view whose sources and views were made."""
        for name in self.graph.order:
            if name in self.graph.unknown or any(
                other not in self.frames for other in self.graph.reads[name]
            ):
                continue
            view = self.pipeline.views[name]
            if view.sql is not None and (read_sql(view.sql).denied or read_sql(view.sql).mistakes):
                # Spark runs a command as soon as it is given one; the rules have refused it already.
                continue
            try:
                # Spark tells places in SQL by itself; Python's lines it does not know.
                with noted(self.spark) if view.python is not None else self._declared(name) as note:
                    frame = make(self.spark, self.pipeline, name, view, self.frames)
                self.where.calls.update(note.texts)
                if view.expect:
                    with unnoted():
                        expect = self._analysed("views", name, frame)
                        frame = held(self._expecting("views", name, expect), name, frame)
                self._keep(name, frame)
            except (AnalysisException, ParseException) as wrong:
                self.findings.append(self._refused(name, wrong))
            except (PySparkException, MillstreamError) as wrong:
                self.findings.append(self._failed(name, wrong))
            except Exception as wrong:
                # A user's function may raise anything; out of our own SQL it would be a defect of ours.
                if view.sql is not None:
                    raise
                self.findings.append(self._failed(name, wrong))

    @contextmanager
    def _declared(self, name: str) -> Iterator[Noted]:
        """The place and the name of a function with state, which is called by no line of Python."""
        hook = self.pipeline.views[name].hook
        with ExitStack() as held:
            if hook is not None:
                key, made = hook
                said = made.partition(":")[2] if isinstance(made, str) else made.__name__
                span = self.loaded.places.value("views", name, key)
                held.enter_context(placed(self.spark, f"{key}:{said}", span.file, span.line))
            yield Noted()

    def queries(self) -> None:
        """Ask Spark's checker about every query whose view was made."""
        for query, target in self.graph.writes.items():
            if target in self.frames:
                self.findings += self._judged(query, target)
                self.findings += self._conditions(query, target)

    def _conditions(self, query: str, target: str) -> Iterator[Finding]:
        """The conditions of sinks for rows that delete, which Spark would else meet with the first batch."""
        for number, entry in enumerate(self.pipeline.queries[query].to):
            if entry.sink.marks is None:
                continue
            setting, condition = entry.sink.marks
            try:
                self.frames[target].where(condition)
            except (AnalysisException, ParseException) as wrong:
                what, why = complaints.words(wrong)
                sink, has = ("queries", query, "to", number, "sink"), self.loaded.places.has
                place = next((one for one in ((*sink, setting), (*sink, "cdc", setting)) if has(*one)), sink)
                yield finding(
                    "MS111",
                    f"{setting} of query '{query}': {what}",
                    self.loaded.places.value(*place),
                    why=why,
                    fix=complaints.cure(wrong),
                    query=query,
                )

    def planned(self) -> Iterator[PlannedQuery]:
        """What each query does whose view was made."""
        settings = {key: str(value) for key, value in self.pipeline.spark.items()}
        for name, target in self.graph.writes.items():
            if target in self.frames:
                yield self._plan(name, target, settings)

    def _plan(self, name: str, target: str, settings: dict[str, str]) -> PlannedQuery:
        query, places = self.pipeline.queries[name], self.loaded.places
        written = places.has("queries", name, "output_mode")
        sinks = (
            PlannedSink(
                name=entry.sink.describe(),
                kind=entry.sink.kind,
                # Where no row replaces another, as with records of a topic in append mode, a key says no such thing.
                key=entry.sink.row_key if entry.sink.replaces(query.output_mode) else (),
                routed_by=entry.sink.routed_by,
                span=places.key("queries", name, "to", number, "sink"),
                function=self._code(entry.sink),
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
            mode_span=places.value("queries", name, "output_mode") if written else None,
            spark=settings,
        )

    def _code(self, sink: Sink) -> BatchCode | None:
        """What the source of the function shows that the sink hands batches or rows to; it is not run."""
        found = (
            batch_code.referred(one, self.pipeline.folder, lambda path: str(shown(Path(path))))
            for one in sink.functions().values()
        )
        return next((code for code in found if code is not None), None)

    def _keep(self, name: str, frame: DataFrame) -> None:
        """Remember a frame as the view that it is, so that plans built on it tell its name."""
        frame.createOrReplaceTempView(name)
        self.frames[name] = self.spark.table(name)

    def _analysed(self, section: str, name: str, frame: DataFrame) -> dict[str, Expectation]:
        """The expectations that Spark can ask of a row; a finding for each of the others."""
        sound = {}
        for expected, one in self.pipeline.expected(name).items():
            try:
                frame.where(F.expr(one.that))
                sound[expected] = one
            except (AnalysisException, ParseException) as wrong:
                what, why = complaints.words(wrong)
                place = (section, name, "expect", expected)
                that = (*place, "that") if self.loaded.places.has(*place, "that") else place
                self.findings.append(
                    finding(
                        "MS111",
                        f"expectation '{expected}' of {section[:-1]} '{name}': {what}",
                        self.loaded.places.value(*that),
                        why=why,
                        fix=complaints.cure(wrong),
                        query=self._query(name),
                    )
                )
        return sound

    def _expecting(self, section: str, name: str, expect: dict[str, Expectation]) -> Pipeline:
        """The pipeline with other expectations of that source or view."""
        entries = getattr(self.pipeline, section)
        changed = entries[name].model_copy(update={"expect": expect})
        return self.pipeline.model_copy(update={section: {**entries, name: changed}})

    def _refused(self, name: str, wrong: PySparkException) -> Finding:
        """A view that Spark cannot analyse."""
        query = self._query(name)
        what, why = complaints.words(wrong)
        if self.pipeline.views[name].sql is None:
            return self._failed(name, wrong)
        start, stop = complaints.stretch(wrong, self.texts[name])
        span = self.loaded.places.sql(name, start, stop)
        return finding(
            "MS111", f"view '{name}': {what}", span, why=why, fix=complaints.cure(wrong), query=query
        )

    def _failed(self, name: str, wrong: Exception) -> Finding:
        """A view whose function fails, or gives no DataFrame."""
        view = self.pipeline.views[name]
        places = self.loaded.places
        if isinstance(wrong, Misdeclared):
            span = places.value("views", name, *wrong.path)
            return finding("MS112", wrong.what, span, fix=wrong.fix, query=self._query(name))
        reference = view.hook[1] if view.hook else None
        place = complaints.in_function(wrong, reference, self.pipeline)
        span = place or places.value("views", name)
        what, why = complaints.words(wrong)
        fix = wrong.fix if isinstance(wrong, MillstreamError) else complaints.cure(wrong)
        said = what if what.startswith(f"view '{name}'") else f"view '{name}': {what}"
        return finding("MS112", said, span, why=why, fix=fix, query=self._query(name))

    def _judged(self, query: str, target: str) -> Iterator[Finding]:
        """What `start()` would refuse, at the operator it is about or at the mode or trigger."""
        mode, trigger = self.pipeline.queries[query].output_mode, self.pipeline.trigger(query)
        refused = refusal(self.frames[target], mode, trigger)
        if refused is None:
            return
        said = f"query '{query}' {refused.about(mode, trigger)}"
        span, label = self._place(refused, query)
        yield finding("MS311", said, span, label=label, why=refused.why, fix=refused.fix, query=query)

    def _place(self, refused: Refusal, query: str) -> tuple[Span | None, str]:
        """The operator in a view's SQL or function; else the trigger, the output mode or the query in the spec."""
        places = self.loaded.places
        if found := complaints.operator(refused.node, self.texts):
            view, start, stop = found
            return places.sql(view, start, stop), f"in view '{view}'"
        call = parse(str(refused.node.origin().toString())) if refused.node is not None else None
        # A function that the spec declares is refused for what the spec says beside it.
        if isinstance(call, Call) and Path(call.file).suffix == ".py":
            return self.where.call(call), "this call"
        setting = "trigger" if refused.cause is Cause.TRIGGER else "output_mode"
        if places.has("queries", query, setting):
            return places.value("queries", query, setting), ""
        return places.key("queries", query), ""

    def _query(self, name: str) -> str | None:
        writes = self.graph.writes
        return next((query for query in writes if name in self.graph.behind(writes[query])), None)


@contextmanager
def _quiet() -> Iterator[None]:
    """No stack traces on the terminal for errors that become findings."""
    loggers = [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
