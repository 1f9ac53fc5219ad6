"""Turn a script into a project: run it as for a check, and write what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checking.scripts.execution.retries import NOTHING_GIVEN
from millstream.checking.scripts.execution.source_files import open_parts
from millstream.checking.scripts.findings import check_recording
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.migration.project_writer import ProjectWriter
from millstream.checking.scripts.runner import run_script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.migration.project_files import MigratedProject
    from millstream.checking.scripts.runner import ScriptRun


@dataclass(frozen=True)
class RecordedMigration:
    """A script's project, and the record of the run from which it was written."""

    project: MigratedProject
    script_run: ScriptRun


def migrate_script(
    spark: SparkSession,
    path: Path,
    args: Sequence[str] = (),
    known_columns: Mapping[str, str] = NOTHING_GIVEN,
) -> MigratedProject:
    """Return the project for a script. The script runs as in a check, and is not changed."""
    return record_migration(spark, path, args, known_columns).project


def record_migration(
    spark: SparkSession,
    path: Path,
    args: Sequence[str] = (),
    known_columns: Mapping[str, str] = NOTHING_GIVEN,
) -> RecordedMigration:
    """Return the project for a script, with the record of the script's run."""
    with open_parts(path) as parts:
        script_run = run_script(spark, path, parts, args, known_columns)
        checked = check_recording(script_run, call_sites.display_name(path))
        texts = [part.text for part in parts]
        writer = ProjectWriter(path, texts, script_run, {query.name: query for query in checked.queries})
        return RecordedMigration(writer.write(), script_run)
