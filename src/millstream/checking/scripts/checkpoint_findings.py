"""Find checkpoints that do not survive a restart, and those in the folder of another checkpoint or of rows."""

from __future__ import annotations

import ast
import re
import time
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.folder_paths import is_inside, normalize_path
from millstream.analysis.python.parsing import parse_python
from millstream.analysis.rule_runner import load_rules
from millstream.checking.scripts.execution.module_search import find_project_root
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.spark_formats import OWN_CHECKPOINT
from millstream.connectors import spark_formats
from millstream.diagnostics.finding import Finding, Severity
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checking.scripts.interception.recording import Recording, StartedQuery
    from millstream.diagnostics.finding import Span

_EMPTIED = {
    "/tmp": "files in /tmp are deleted at a restart of the machine, or after some days",  # noqa: S108 - what is warned of
    "/private/tmp": "files in /tmp are deleted at a restart of the machine, or after some days",
    "/dev/shm": "/dev/shm is in memory: its files are lost when the machine stops",  # noqa: S108 - what is warned of
}
_AGAIN = "the query then starts from the beginning and writes its rows again"
# What happens to a checkpoint in a folder of rows, by the format; "" for the file formats.
_OUTPUTS = {
    "": "a program that does not use Spark's log of the written files reads those of the checkpoint as rows",
    spark_formats.DELTA: "VACUUM deletes files that are not part of the table, so also those of the checkpoint",
}
# Seconds between the start of a script and the check of its checkpoints.
_LONGEST_RUN = 120
# The length from which a part of a random text is recognised.
_SHORTEST = 6
_DELETING = frozenset({"rmtree", "rm", "delete"})
_ASKING = frozenset({"exists", "isdir", "is_dir"})


def find_checkpoint_problems(recording: Recording) -> Iterator[Finding]:
    """Yield findings about checkpoints that are lost at a restart, or are in another folder that a query writes."""
    for query in recording.queries:
        yield from _temporary_checkpoint(query, recording)
    yield from _nested_checkpoints(recording)
    yield from _find_checkpoints_in_outputs(recording)


def _temporary_checkpoint(query: StartedQuery, recording: Recording) -> Iterator[Finding]:
    folder = normalize_path(query.checkpoint)
    root = next((root for root in _EMPTIED if f"{folder}/".startswith(f"{root}/")), None)
    script = None if query.span is None else call_sites.find_file(query.span.file)
    places = [str(Path.cwd())]
    if script is not None:
        places.append(str(find_project_root(script) or script.parent))
    if any(place not in _EMPTIED and is_inside(folder, place) for place in places):
        # Where the script's own project is, or where it is checked, says nothing about the checkpoint.
        root = None
    if query.format == spark_formats.MEMORY and query.mode is not OutputMode.COMPLETE and query.checkpoint:
        yield build_rule_finding(
            "MS403",
            f"the checkpoint of '{query.name}' is refused at the next start",
            query.option_spans.get("checkpointLocation", query.span),
            why="the memory sink continues from a checkpoint in complete mode only",
            fix="leave out the checkpoint location; the rows in memory are lost at a restart anyway",
            query=query.name,
        )
        return
    is_lasting = query.format.lower() not in OWN_CHECKPOINT or query.format in ("foreachBatch", "foreach")
    if not query.checkpoint or not (root or is_lasting):
        return
    place, why = f"is in {'/'.join(folder.split('/')[:3])}", f"{_EMPTIED.get(root or '', '')}; {_AGAIN}"
    fix = "use a persistent folder"
    if recording.temporary_folder and folder.startswith(recording.temporary_folder):
        place, why = "is in a temporary folder", f"the next start uses a different folder: {_AGAIN}"
    elif is_lasting and (source := _find_fresh_part(query.checkpoint, recording)):
        place, why = f"has {source} in its path", f"each start uses a new folder: {_AGAIN}"
        fix = "use the same folder at each start"
    elif is_lasting and (deleted := _find_deletion(query, recording)):
        place, why = f"is deleted at each {deleted}", _AGAIN.replace("then ", "")
        fix = "do not delete it in the script; delete it by hand when you want to start from the beginning"
    elif root is None:
        return
    yield build_rule_finding(
        "MS403",
        f"the checkpoint of '{query.name}' {place}",
        query.option_spans.get("checkpointLocation", query.span),
        why=why,
        fix=fix,
        query=query.name,
    )


def _find_fresh_part(path: str, recording: Recording) -> str:
    """Return what makes a path another one at each start: a UUID or a time; "" if nothing does."""
    if any(text[:_SHORTEST] in path for text in recording.random_texts):
        return "a random identifier"
    now = time.time()
    for digits in re.findall(r"\d{10,}", path):
        if now - _LONGEST_RUN <= int(digits[:10]) <= now + 1:
            return "the time of the start"
    digits = re.sub(r"\D", "", path)
    for second in range(0, _LONGEST_RUN + 60, 60):
        moment = datetime.fromtimestamp(now - second, UTC)
        if any(f"{time_:%Y%m%d%H%M}" in digits for time_ in (moment, moment.astimezone())):
            return "the time of the start"
    return ""


def _find_deletion(query: StartedQuery, recording: Recording) -> str:
    """Return when and where the folder is always deleted, as in "start, in line 7"; "" if it is not."""
    checkpoint = _as_one_form(query.checkpoint)
    for folder, span in recording.deletions:
        outer = _as_one_form(folder)
        if outer.strip("/") not in ("", MARK) and f"{checkpoint}/".startswith(f"{outer}/"):
            if span is None:
                return "run of the notebook"
            is_here = query.span is not None and span.file == query.span.file
            return f"run of the notebook, in {f'line {span.line}' if is_here else f'{span.file}:{span.line}'}"
    line = _find_deleting_line(query)
    return "" if line is None else f"start, in line {line}"


def _as_one_form(path: str) -> str:
    """Return a path of Databricks without the ways in which the root of its files is written."""
    return normalize_path(re.sub(r"^(?:dbfs:/*|/dbfs/)", "/", path)).rstrip("/")


def _find_deleting_line(query: StartedQuery) -> int | None:
    """Return the line on which the script deletes the folder whenever it starts, if there is one."""
    span = query.option_spans.get("checkpointLocation", query.span)
    if span is None or MARK in query.checkpoint:
        return None
    try:
        tree = parse_python(call_sites.find_file(span.file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    constants = {
        target.id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    folders = {
        ast.dump(call.args[1])
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _function(call) == "option" and len(call.args) == 2
        and isinstance(call.args[0], ast.Constant) and call.args[0].value == "checkpointLocation"
        and call.lineno <= span.line <= (call.end_lineno or 0)
    }  # fmt: skip
    for call in _list_unconditional_calls(tree):
        if _function(call) not in _DELETING or not call.args or call.lineno >= span.line:
            continue
        argument = call.args[0]
        value = (
            argument.value
            if isinstance(argument, ast.Constant)
            else constants.get(getattr(argument, "id", ""))
        )
        folder = normalize_path(str(value)).rstrip("/") if value else None
        is_same = folder is not None and f"{normalize_path(query.checkpoint)}/".startswith(f"{folder}/")
        if is_same or ast.dump(argument) in folders:
            return call.lineno
    return None


def _list_unconditional_calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls outside of functions and of conditions, except of one that asks whether a folder exists."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(child, ast.If | ast.IfExp | ast.While) and not (
            isinstance(child.test, ast.Call) and _function(child.test) in _ASKING
        ):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _list_unconditional_calls(child)


def _function(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _nested_checkpoints(recording: Recording) -> Iterator[Finding]:
    folders = [
        (query, normalize_path(query.checkpoint))
        for query in recording.queries
        if query.checkpoint and MARK not in query.checkpoint
    ]
    for (first, outer), (other, inner) in combinations(folders, 2):
        if is_inside(inner, outer) or is_inside(outer, inner):
            yield build_rule_finding(
                "MS401",
                f"the checkpoint of '{first.name}' or '{other.name}' is inside that of the other query",
                other.option_spans.get("checkpointLocation", other.span),
                severity=Severity.ERROR,
                why="each query would continue from the offsets of the other, and rows would be lost without an "
                "error",
                fix="give each query a separate folder",
                query=other.name,
            )


def _find_checkpoints_in_outputs(recording: Recording) -> Iterator[Finding]:
    """Yield a finding for each checkpoint in a folder of rows, unless its own folder has a hidden name."""
    for owner in recording.queries:
        folder = normalize_path(owner.checkpoint)
        if not owner.checkpoint or MARK in folder:
            continue
        for query in recording.queries:
            target = normalize_path(query.target)
            why = _OUTPUTS.get("" if query.format in spark_formats.WRITABLE_FILES else query.format)
            if why is None or "/" not in target or MARK in target:
                continue
            is_hidden = any(part.startswith(("_", ".")) for part in folder[len(target) :].split("/"))
            if folder == target or (is_inside(folder, target) and not is_hidden):
                yield build_rule_finding(
                    "MS401",
                    f"the checkpoint of '{owner.name}' is in the folder that '{query.name}' writes",
                    owner.option_spans.get("checkpointLocation", owner.span),
                    why=why,
                    fix="use a folder outside of it",
                    query=owner.name,
                )
                break


def build_rule_finding(
    code: str,
    message: str,
    span: Span | None,
    *,
    severity: Severity = Severity.WARNING,
    why: str = "",
    fix: str = "",
    query: str | None = None,
) -> Finding:
    """Build a finding of a rule, with the rule's name."""
    return Finding(code, load_rules()[code].name, severity, message, span, why=why, fix=fix, query=query)
