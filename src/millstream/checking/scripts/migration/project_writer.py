"""Write the project of a script from the record of its run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.analysis.query.plan_model import Read
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.migration import time_zone
from millstream.checking.scripts.migration.code_slice import NotMovable, ScriptCode
from millstream.checking.scripts.migration.merge_function import recognise_merge
from millstream.checking.scripts.migration.project_files import (
    MigratedProject,
    ProjectFiles,
    make_identifier,
)
from millstream.checking.scripts.migration.spec_parts import (
    build_merge,
    build_sink,
    build_source,
    build_trigger,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.checking.scripts.interception.recording import StartedQuery
    from millstream.checking.scripts.runner import ScriptRun

# The name that a check gives to the n-th query of a script if it has none.
_UNNAMED = re.compile(r"query \d+")


class ProjectWriter:
    """Collects the parts of a project from a recorded script."""

    def __init__(
        self,
        script: Path,
        texts: Sequence[str],
        script_run: ScriptRun,
        plans: Mapping[str, PlannedQuery],
    ) -> None:
        """`texts` are the script as it runs, or the cells of a notebook, each on its lines in the file."""
        self.script = script
        self.recording = script_run.recording
        self.plans = plans
        self.names = {source.name: make_identifier(source.name) for source in self.recording.sources.values()}
        lines = {
            source.span.line: self.names[source.name]
            for source in self.recording.sources.values()
            if source.span
        }
        self.code = ScriptCode(texts, lines)
        self.project = MigratedProject(names=self.names)
        self.files = ProjectFiles(script, self.project)

    def write(self) -> MigratedProject:
        """Return the project. Nothing is written to disk, and the script is not touched."""
        for query in self.recording.queries:
            line = query.span.line if query.span else 0
            try:
                self._add(query, line)
            except NotMovable as reason:
                self.project.left.append(f"query '{query.name}' (line {line}): {reason}")
        for cell in self.recording.broken_cells:
            where = f" at line {cell.span.line}" if cell.span else ""
            problem = f"it is {cell.language}" if cell.language else cell.message
            self.project.left.append(f"the cell{where}: Python cannot read it ({problem})")
        for doubt in self.recording.doubts:
            if doubt.what.startswith("module ") and not self._has_import(doubt.what.removeprefix("module ")):
                # Only code that is not moved uses it.
                continue
            where = f" (line {doubt.span.line})" if doubt.span else ""
            self.project.left.append(f"{doubt.what}{where}: {doubt.why}")
        moved = (query.frame for query in self.recording.queries if query.number in self.project.queries)
        if time_zone.depends_on_zone(moved, self.recording):
            self.project.differences.append(time_zone.NOTE)
        self.files.write(self.script.stem, self.recording.conf)
        return self.project

    def _has_import(self, module: str) -> bool:
        """Return whether code that was moved imports a module."""
        return any(re.match(rf"(?:import|from) {re.escape(module)}\b", line) for line in self.files.imports)

    def _add(self, query: StartedQuery, line: int) -> None:
        if isinstance(query.frame, Unknown):
            raise NotMovable(f"{query.frame.doubt.what} is not known")
        sink, notes = self._sink(query)
        name = make_identifier(_find_name(query.name, sink))
        # A view is a function of the module that also has the script's own functions.
        while name in self.files.queries or name in self.names.values() or name in self.code.defined_names:
            name = f"{name}_query"
        code = self.code.extract(name, line)
        plan = self.plans[query.name]
        reads = {read.source: read for read in plan.walk() if isinstance(read, Read) and read.source}
        entries = {}
        for source in self.recording.sources.values():
            if self.names[source.name] in code.sources:
                read = reads.get(source.name)
                columns = {column.name: column.type for column in read.columns} if read else {}
                entry, more = build_source(source, columns)
                entries[self.names[source.name]] = entry
                notes += [f"source '{source.name}': {note}" for note in more]
        self.files.sources |= entries
        self.files.imports |= dict.fromkeys(code.imports)
        self.files.definitions |= dict.fromkeys(code.definitions)
        self.files.functions.append(code.function)
        entry = {"output_mode": str(query.mode)}
        trigger, differences = build_trigger(query)
        if trigger is not None:
            entry["trigger"] = trigger
        notes += [f"query '{query.name}': {difference}" for difference in differences]
        self.files.queries[name] = entry | {"to": sink}
        self.project.queries[query.number] = name
        self.project.moved.append(f"query '{query.name}' (line {line}): query and view '{name}'")
        self.project.differences += [note for note in notes if note not in self.project.differences]
        if query.checkpoint:
            self.project.differences.append(
                f"query '{query.name}': its checkpoint {query.checkpoint} is not used; the project has its own"
            )

    def _sink(self, query: StartedQuery) -> tuple[dict[str, Any], list[str]]:
        if query.format != "foreachBatch":
            return build_sink(query)
        function = getattr(query.function, "__name__", "")
        if not function.isidentifier():
            raise NotMovable("its foreachBatch function has no name")
        imports, definitions = self.code.function(function)
        merge = recognise_merge("\n".join(definitions), function)
        sink = build_merge(merge, function, str(query.mode)) if merge is not None else None
        if sink is not None:
            return sink
        self.files.imports |= dict.fromkeys(imports)
        self.files.definitions |= dict.fromkeys(definitions)
        return {"foreach_batch": {"function": f"transforms:{function}"}}, []


def _find_name(name: str, sink: Mapping[str, Any]) -> str:
    """Return the name of a query; for one without a name, that of its folder, table, topic or function."""
    if not _UNNAMED.fullmatch(name):
        return name
    settings = next(iter(sink.values())) or {}
    targets = (settings.get(key) for key in ("path", "table", "topic", "function"))
    target = next((str(value) for value in targets if value), name)
    return re.split(r"[/.:]", target.rstrip("/"))[-1] or name
