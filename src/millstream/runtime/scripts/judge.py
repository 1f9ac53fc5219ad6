"""Findings of what a script was seen to do: Spark's verdict, the rules, and what could not be judged."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from millstream.analysis.allow import allowed
from millstream.analysis.causes import once
from millstream.analysis.check import of_plans, phrases, rules
from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Severity
from millstream.pipeline.load import in_file_order
from millstream.runtime.checking import Checked
from millstream.runtime.judging import Cause, refusal
from millstream.runtime.scripts.formats import OWN_CHECKPOINT
from millstream.runtime.scripts.plans import Places, planned, streams
from millstream.runtime.scripts.promises import promise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.guarantee import Promise
    from millstream.diagnostics.finding import Finding
    from millstream.runtime.scripts.record import Doubt, Recording, Started
    from millstream.runtime.scripts.script import Ran

# These say what a rule would, had the script a spec: they can be allowed by a comment too.
ALLOWABLE = frozenset({"MS113", "MS115", "MS116", "MS117", "MS119"})


def judged(ran: Ran, first: str, found: Sequence[Finding] = ()) -> Checked:
    """What a check says of what was recorded; `first` is the file that comes first, as findings name it.

    `found` are findings made before.
    """
    recording = ran.recording
    places = Places.of(recording, ran.texts)
    verdict: list[Finding] = []
    plans: list[PlannedQuery] = []
    promised: list[Promise] = []
    for query in recording.queries:
        if not isinstance(query.frame, DataFrame):
            continue
        refused = list(of_spark(query, query.frame, places))
        verdict += refused
        plan = planned(query, places, recording.conf)
        plans.append(plan)
        promised.append(promise(query, streams(plan, recording.sources), plan))
    own = [*found, *of_script(ran), *of_recording(recording)]
    ruled = [*own, *of_plans(plans)]
    files = {one.span.file for one in (*ruled, *verdict) if one.span} | {first}
    texts = {name: text for name in files if (text := _text(name)) is not None}
    known = set(rules()) | ALLOWABLE
    kept = allowed(ruled, texts, known, known if ran.raised is None else set())
    findings = in_file_order(once(kept, verdict, phrases()), first)
    failed = any(one.severity is Severity.ERROR for one in findings)
    return Checked(findings, tuple(plans), [] if failed else promised, tuple(verdict), texts)


def of_spark(query: Started, frame: DataFrame, places: Places) -> Iterator[Finding]:
    """What `start()` would refuse of a query, at the operator it is about or at the call that sets the mode."""
    refused = refusal(frame, query.mode, query.trigger, query.format or None)
    if refused is not None:
        said = f"query '{query.name}' {refused.about(query.mode, query.trigger)}"
        span = places.of_node(refused.node)
        if span is None and refused.cause is not Cause.TRIGGER:
            span = query.mode_span
        yield finding("MS311", said, span or query.span, why=refused.why, fix=refused.fix, query=query.name)
    if not query.checkpoint and query.format.lower() not in OWN_CHECKPOINT:
        yield finding(
            "MS116",
            f"query '{query.name}' writes {query.format} and has no checkpoint location",
            query.span,
            why="Spark refuses to start it: without a checkpoint it cannot know what it has read and written",
            fix="add .option('checkpointLocation', …), another folder for each query",
            query=query.name,
        )


def of_script(ran: Ran) -> Iterator[Finding]:
    """What the script itself did wrong."""
    recording, raised = ran.recording, ran.raised
    if raised is not None:
        empty = raised.emptiness and recording.emptied
        yield finding(
            "MS114",
            f"the script ends here: {raised.what}",
            raised.span,
            severity=Severity.INFO if empty else Severity.ERROR,
            why="in a check what is read has no rows, and the script needs one: what comes after is not judged"
            if empty
            else raised.why,
            fix=raised.fix,
        )
    elif ran.script and not recording.queries:
        yield finding(
            "MS115",
            "the script starts no streaming query",
            None,
            severity=Severity.INFO,
            why="a check judges what is started by writeStream … start() or toTable()",
            fix="give the arguments with which it starts one, after the file",
        )
    for doubt in recording.doubts:
        yield not_judged(doubt, recording)
    if raised is None and ran.script:
        yield from _waiting(ran)


def not_judged(doubt: Doubt, recording: Recording) -> Finding:
    """Something of which nothing is known, with the queries that hang on it."""
    hang = [
        query.name
        for query in recording.queries
        if not isinstance(query.frame, DataFrame) and query.frame.doubt == doubt
    ]
    queries = f": {_listed(hang)} cannot be judged" if hang else " cannot be judged"
    message = f"what is made of {doubt.what}{queries}"
    return finding(
        "MS113", message, doubt.span, severity=Severity.INFO, why=doubt.why, fix=doubt.fix,
        query=hang[0] if len(hang) == 1 else None,
    )  # fmt: skip


def of_recording(recording: Recording) -> Iterator[Finding]:
    """What the queries of a script do to each other, and to themselves at a restart."""
    by_checkpoint: dict[str, list[Started]] = defaultdict(list)
    by_name: dict[str, list[Started]] = defaultdict(list)
    for query in recording.queries:
        if query.checkpoint:
            by_checkpoint[query.checkpoint.rstrip("/")].append(query)
        if query.named:
            by_name[query.name].append(query)
        if not query.checkpoint and query.format == "foreachBatch":
            yield finding(
                "MS116",
                f"query '{query.name}' has no checkpoint location",
                query.span,
                severity=Severity.WARNING,
                why="Spark makes one for this run alone: after a restart the query reads its sources afresh, and"
                " what was written may be written again or be missing",
                fix="add .option('checkpointLocation', …)",
                query=query.name,
            )
    for place, queries in by_checkpoint.items():
        yield from _shared(
            queries, f"the checkpoint '{place}'", "each would take the other's offsets for its own"
        )
    for name, queries in by_name.items():
        if not any(one.trigger.ends for one in queries):
            yield from _shared(
                queries, f"the name '{name}'", "Spark does not start a second query of that name"
            )


def _shared(queries: list[Started], what: str, why: str) -> Iterable[Finding]:
    for later in queries[1:]:
        line = queries[0].span.line if queries[0].span else 0
        if later.span == queries[0].span:
            # One call in a loop: the same query is started for each of several inputs, with one folder for all.
            line = 0
        where = f" of line {line}" if line else ""
        yield finding(
            "MS117",
            f"query '{later.name}' has {what}, which query '{queries[0].name}'{where} has too",
            later.span,
            why=why,
            fix="give each query its own",
            query=later.name,
        )


def _waiting(ran: Ran) -> Iterator[Finding]:
    """Does the script stay until its queries end, and does it start all of them?"""
    queries, waits = ran.recording.queries, ran.recording.waits
    running = [query for query in queries if not query.trigger.ends]
    for wait in waits:
        held = next(
            (one for one in running if wait.query in (None, one.number) and one.number <= wait.started), None
        )
        later = [one for one in queries if one.number > wait.started]
        if held and later and not wait.bounded and _for_ever(wait.query, held):
            yield finding(
                "MS119",
                f"{_listed([one.name for one in later])} starts only after query '{held.name}' has ended",
                wait.span,
                why=f"'{held.name}' runs until it is stopped, and this call waits for that",
                fix="start all queries first, then wait with spark.streams.awaitAnyTermination()",
                query=later[0].name,
            )
            return
    if queries and not waits and not ran.endless:
        yield finding(
            "MS119",
            "the script ends without waiting for its queries",
            queries[-1].span,
            severity=Severity.WARNING,
            why="when it is run by spark-submit or python, its queries end with it",
            fix="end it with .awaitTermination(), or with spark.streams.awaitAnyTermination() for several",
            query=queries[-1].name,
        )


def _for_ever(number: int | None, held: Started) -> bool:
    return number is None or number == held.number


def _listed(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) == 1:
        return f"query {quoted[0]}"
    return f"queries {', '.join(quoted[:-1])} and {quoted[-1]}"


def _text(name: str) -> str | None:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError):
        # Its findings are shown without their lines.
        return None
