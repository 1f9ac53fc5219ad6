"""Create the findings of a recorded script: Spark's refusals, the rules, and the parts that cannot be checked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.analysis.deduplicate import deduplicate_findings
from millstream.analysis.folder_paths import normalize_path
from millstream.analysis.rule_runner import load_rules, phrases_by_code, run_plan_rules
from millstream.analysis.suppressions import apply_suppressions
from millstream.checking.check import CheckResult
from millstream.checking.compat.start_check import RefusalCause, find_refusal
from millstream.checking.scripts.batch_names import find_undefined_names
from millstream.checking.scripts.guarantees import derive_guarantee
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.columns.assumed_columns import PLACEHOLDER
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.spark_formats import NEEDS_NO_COLUMNS, OWN_CHECKPOINT
from millstream.checking.scripts.interception.streaming_query import list_sources
from millstream.checking.scripts.query_plans import (
    ScriptSpans,
    plan_query,
    plan_unknown_query,
    streams_read,
)
from millstream.checking.scripts.setting_findings import find_own_output, find_setting_problems
from millstream.connectors import spark_formats
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.judged_query import JudgedQuery
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.spec_file import sort_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.analysis.query.delivery_guarantee import Promise
    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.checking.scripts.interception.recording import Doubt, Recording, StartedQuery
    from millstream.checking.scripts.runner import ScriptRun
    from millstream.diagnostics.finding import Finding

# Findings that would be rules if the script had a spec, so a comment can allow them too.
ALLOWABLE = frozenset({"MS113", "MS115", "MS116", "MS117", "MS119"})

# Why a query finds no checkpoint after a restart, by whether the session has a folder for checkpoints.
_NEW_CHECKPOINT = {
    False: "Spark creates a temporary checkpoint for this run",
    True: "spark.sql.streaming.checkpointLocation gives a query without a name a new folder at each start",
}

# Sinks that Spark starts without a checkpoint, although what they write remains.
_FUNCTIONS = ("foreachBatch", "foreach")

# Rules that read the function of foreachBatch or foreach.
_FUNCTION_RULES = "MS34"

# Rules that depend on the types of columns. They are not asked where the script only names the columns.
_TYPE_RULES = (
    "MS205",
    "MS213",
    "MS305",
    "MS306",
    "MS307",
    "MS308",
    "MS550",
    "MS551",
    "MS552",
    "MS555",
    "MS556",
)


def check_recording(script_run: ScriptRun, first: str, other_findings: Sequence[Finding] = ()) -> CheckResult:
    """Check what was recorded. `first` is the file whose findings come first, as findings name it.

    `other_findings` are earlier findings to include.
    """
    recording = script_run.recording
    places = ScriptSpans.of(recording, script_run.texts)
    verdict: list[Finding] = []
    plans: list[PlannedQuery] = []
    promised: list[Promise] = []
    unknown: list[PlannedQuery] = []
    feedback: list[Finding] = []
    readers: dict[str, list[StartedQuery]] = defaultdict(list)
    running: list[StartedQuery] = []
    for started in recording.queries:
        query = without_columns(started)
        if isinstance(query.frame, Unknown):
            unknown.append(plan_unknown_query(query, recording.conf))
            running.append(started)
            continue
        refusals = list(find_start_refusals(query, query.frame, places))
        verdict += refusals
        running += [] if refusals else [started]
        plan = plan_query(query, places, recording.conf)
        plans.append(plan)
        streams = streams_read(plan, recording.sources)
        for stream in streams:
            readers[stream.name].append(query)
        feedback += find_own_output(query, streams)
        promised.append(derive_guarantee(query, streams, plan))
    own_findings = [
        *other_findings,
        *feedback,
        *find_script_problems(script_run),
        *find_shared_resources(running, is_notebook=recording.is_notebook),
        *find_setting_problems(recording, readers),
        *find_undefined_names(script_run),
    ]
    # A function is read whatever the columns of its batches are.
    of_functions = [
        finding for finding in run_plan_rules(unknown) if finding.code.startswith(_FUNCTION_RULES)
    ]
    assumed = {query.name for query in recording.queries if _is_assumed(query, recording)}
    of_plans = [
        finding
        for finding in run_plan_rules(plans)
        if finding.query not in assumed or not finding.code.startswith(_TYPE_RULES)
    ]
    ruled = [*own_findings, *of_plans, *of_functions]
    files = {finding.span.file for finding in (*ruled, *verdict) if finding.span} | {first}
    texts = {name: text for name in files if (text := _read_text(name)) is not None}
    known = set(load_rules()) | ALLOWABLE
    unsuppressed = apply_suppressions(ruled, texts, known, known if script_run.raised is None else set())
    findings = sort_findings(deduplicate_findings(unsuppressed, verdict, phrases_by_code()), first)
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    judged = tuple(_judged(query, recording) for query in recording.queries)
    return CheckResult(
        findings, tuple(plans), [] if failed else promised, tuple(verdict), texts, judged=judged
    )


def _judged(query: StartedQuery, recording: Recording) -> JudgedQuery:
    """Return whether a query was checked, and else why not."""
    frame = without_columns(query).frame
    if not isinstance(frame, Unknown):
        return JudgedQuery(query.name, query.span)
    doubt = frame.doubt
    known = next((entry for entry in recording.doubts if entry == doubt), doubt)
    what = f"{known.what} is not known, because {known.why}" if known.why else f"{known.what} is not known"
    return JudgedQuery(query.name, query.span, what.replace(MARK, "…"))


def without_columns(query: StartedQuery) -> StartedQuery:
    """Return a query as it can be checked: one that needs no columns of an unknown source has the source's probe."""
    frame = query.frame
    if not isinstance(frame, Unknown) or frame.probe is None:
        return query
    columns = {name.lower() for name in frame.probe.columns}
    needed = {name.lower() for name in query.partitioned}
    if query.format.lower() == spark_formats.KAFKA:
        needed.add("value")
    elif query.format.lower() not in NEEDS_NO_COLUMNS and PLACEHOLDER in columns:
        return query
    return replace(query, frame=frame.probe) if needed <= columns else query


def _is_assumed(query: StartedQuery, recording: Recording) -> bool:
    """Return whether a query may read columns that only the script's own names tell of."""
    return isinstance(query.frame, Unknown) or bool(recording.decoded)


def find_start_refusals(query: StartedQuery, frame: DataFrame, places: ScriptSpans) -> Iterator[Finding]:
    """Yield the refusal of `start()`, located at the refused operator or at the call that sets the output mode."""
    refusals = find_refusal(frame, query.mode, query.trigger, query.format or None)
    if refusals is not None:
        message = f"query '{query.name}' {refusals.about(query.mode, query.trigger)}"
        span = places.span_of_node(refusals.node)
        if span is None and refusals.cause is not RefusalCause.TRIGGER:
            span = query.mode_span
        yield build_finding(
            "MS311", message, span or query.span, why=refusals.why, fix=refusals.fix, query=query.name
        )
    if not query.checkpoint and not query.has_new_checkpoint and query.format.lower() not in OWN_CHECKPOINT:
        yield build_finding(
            "MS116",
            f"query '{query.name}' writes {query.format} and has no checkpoint location",
            query.span,
            why="Spark refuses to start the query: without a checkpoint, it cannot know what the query has "
            "already read and written",
            fix="add .option('checkpointLocation', …), with a separate folder for each query",
            query=query.name,
        )


def find_script_problems(script_run: ScriptRun) -> Iterator[Finding]:
    """Yield findings about the script itself: an error, no query, unknown parts, misplaced waits."""
    recording, raised = script_run.recording, script_run.raised
    for cell in recording.broken_cells:
        yield build_finding(
            "MS114",
            f"this cell is {cell.language}, so it is not checked"
            if cell.language
            else f"this cell cannot be read: {cell.message}",
            cell.span,
            severity=Severity.INFO if cell.language else Severity.ERROR,
            why="the other cells are checked; what this one assigns is unknown to them",
        )
    if raised is not None:
        ends = "the script ends here"
        if raised.is_handled:
            ends = f"the script catches this error, and {'ends' if recording.queries else 'starts no query'}"
        yield build_finding(
            "MS114",
            f"{ends}: {raised.what}".replace(MARK, "…"),
            raised.span,
            severity=Severity.INFO if raised.is_only_here else Severity.ERROR,
            why="the script fails only in a check; the code after this line is not checked"
            if raised.is_only_here
            else raised.why,
            fix=raised.fix,
        )
    elif script_run.is_script and not recording.queries:
        yield build_finding(
            "MS115",
            "the script starts no streaming query",
            None,
            severity=Severity.INFO,
            why="only queries that the script starts with writeStream and start() or toTable() are checked",
            fix="if the script starts a query only with certain arguments, pass them after the file name"
            if script_run.mentions_queries
            else "this file contains no writeStream; name the file that starts a query",
        )
    for doubt in recording.doubts:
        yield describe_unknown(doubt, recording)
    if raised is None and script_run.is_script:
        yield from _wait_findings(script_run)


def describe_unknown(doubt: Doubt, recording: Recording) -> Finding:
    """Return the finding for an unknown value, with the queries that depend on it."""
    dependent = [
        query.name
        for query in recording.queries
        if isinstance(frame := without_columns(query).frame, Unknown) and frame.doubt == doubt
    ]
    if dependent:
        queries = f"{_joined_names(dependent)} cannot be checked"
    elif _has_assumed_columns(doubt, recording):
        subject = "what comes of it" if doubt.what.startswith(("module ", "name ")) else "it"
        queries = f"the check assumes that {subject} has the columns that the script uses"
    else:
        queries = "code that uses this cannot be checked"
    message = f"{doubt.message or f'{doubt.what} is not known here'}: {queries}".replace(MARK, "…")
    if doubt.message and not dependent:
        message = doubt.message
    return build_finding(
        "MS114" if doubt.message else "MS113", message, doubt.span,
        severity=Severity.INFO, why=doubt.why, fix=doubt.fix.replace(MARK, "…"),
        query=dependent[0] if len(dependent) == 1 else None,
    )  # fmt: skip


def _has_assumed_columns(doubt: Doubt, recording: Recording) -> bool:
    """Return whether something unknown is taken to have the columns that the script names."""
    frames = [query.frame for query in recording.queries if isinstance(query.frame, Unknown)]
    is_source = any(doubt.what in frame.sources for frame in frames if frame.probe is not None)
    return recording.assumed is not None and (is_source or doubt.what in recording.assumed)


def find_shared_resources(running: Sequence[StartedQuery], *, is_notebook: bool) -> Iterator[Finding]:
    """Yield findings about queries that share a checkpoint, a folder or a name, and about missing checkpoints.

    `running` are those that Spark starts. A notebook may start a query again, and Spark then stops its first run.
    """
    by_checkpoint: dict[str, list[StartedQuery]] = defaultdict(list)
    by_name: dict[str, list[StartedQuery]] = defaultdict(list)
    by_folder: dict[str, list[StartedQuery]] = defaultdict(list)
    for query in running:
        place = query.checkpoint.rstrip("/")
        is_again = is_notebook and any(_is_same_query(query, earlier) for earlier in by_checkpoint[place])
        if query.checkpoint and MARK not in query.checkpoint and not is_again:
            by_checkpoint[place].append(query)
        is_file = query.format in spark_formats.WRITABLE_FILES and MARK not in query.target + query.checkpoint
        if is_file and "/" in query.target and query.checkpoint:
            by_folder[normalize_path(query.target)].append(query)
        if query.has_name and MARK not in query.name:
            by_name[query.name].append(query)
        needs_checkpoint = query.has_new_checkpoint and query.format.lower() not in OWN_CHECKPOINT
        if not query.checkpoint and (needs_checkpoint or query.format in _FUNCTIONS):
            yield build_finding(
                "MS116",
                f"query '{query.name}' has no checkpoint location",
                query.span,
                severity=Severity.WARNING,
                why=f"{_NEW_CHECKPOINT[query.has_new_checkpoint]}: after a restart the query starts from the "
                f"beginning, so rows may be written again or be missing",
                fix="add .option('checkpointLocation', …)",
                query=query.name,
            )
    for location, queries in by_checkpoint.items():
        yield from _shared_findings(
            queries, f"the checkpoint '{location}'", "each query would use the other's offsets as its own"
        )
    for folder, queries in by_folder.items():
        # Queries that share a checkpoint are reported above.
        others = [query for query in queries[1:] if query.checkpoint != queries[0].checkpoint]
        yield from _shared_findings(
            [queries[0], *others],
            f"the folder '{folder}'",
            "the folder has one log of batches: Spark takes a batch of one query for one of the other, and skips it",
        )
    for name, queries in by_name.items():
        if not any(started.trigger.has_end for started in queries):
            yield from _shared_findings(
                queries, f"the name '{name}'", "Spark does not start a second query with the same name"
            )


def _is_same_query(query: StartedQuery, earlier: StartedQuery) -> bool:
    """Return whether a query writes the same to the same place as an earlier one, at most with another trigger."""
    return (
        (query.format, query.target, query.mode) == (earlier.format, earlier.target, earlier.mode)
        and query.function is earlier.function
        and list_sources(query) == list_sources(earlier)
    )


def _shared_findings(queries: list[StartedQuery], shared: str, reason: str) -> Iterable[Finding]:
    for later in queries[1:]:
        line = queries[0].span.line if queries[0].span else 0
        if later.span == queries[0].span:
            # One call in a loop starts a query for each of several inputs, all with one folder.
            line = 0
        where = f" (line {line})" if line else ""
        yield build_finding(
            "MS117",
            f"query '{later.name}' uses {shared}, which query '{queries[0].name}'{where} uses too",
            later.span,
            why=reason,
            fix="use a different one for each query",
            query=later.name,
        )


def _wait_findings(script_run: ScriptRun) -> Iterator[Finding]:
    """Yield findings if the script ends before its queries do, or waits before it has started all of them."""
    queries, waits = script_run.recording.queries, script_run.recording.waits
    running = [query for query in queries if not query.trigger.has_end]
    for wait in waits:
        blocking = next(
            (
                started
                for started in running
                if wait.query in (None, started.number) and started.number <= wait.started
            ),
            None,
        )
        later = [started for started in queries if started.number > wait.started]
        if blocking and later and not wait.is_bounded and _waits_for(wait.query, blocking):
            verb = "starts" if len(later) == 1 else "start"
            yield build_finding(
                "MS119",
                f"{_joined_names([started.name for started in later])} {verb} only after '{blocking.name}' has ended",
                wait.span,
                # Whoever runs the cells of a notebook may stop one that waits, and go on.
                severity=Severity.WARNING if script_run.keeps_queries else Severity.ERROR,
                why=f"query '{blocking.name}' runs until it is stopped, and this call waits until then",
                fix="start all queries first, then wait with spark.streams.awaitAnyTermination()",
                query=later[0].name,
            )
            return
    # The queries of a session on a server outlive the script.
    keeps_queries = script_run.keeps_queries or "spark.remote" in script_run.recording.conf
    if queries and not waits and not script_run.is_endless and not keeps_queries:
        yield build_finding(
            "MS119",
            "the script ends without waiting for its queries",
            queries[-1].span,
            severity=Severity.WARNING,
            why="when spark-submit or python runs the script, the queries end when the script ends",
            fix="wait for the query with .awaitTermination(), or for several queries with "
            "spark.streams.awaitAnyTermination()",
            query=queries[-1].name,
        )


def _waits_for(number: int | None, query: StartedQuery) -> bool:
    return number is None or number == query.number


def _joined_names(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) == 1:
        return f"query {quoted[0]}"
    return f"queries {', '.join(quoted[:-1])} and {quoted[-1]}"


def _read_text(name: str) -> str | None:
    try:
        return call_sites.find_file(name).read_text(encoding="utf-8")
    except (OSError, ValueError):
        # The findings in this file are shown without their lines.
        return None
