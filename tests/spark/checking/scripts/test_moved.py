"""The page about moving a job over: its job and its two specs give the same rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.check import check
from millstream.checking.scripts.check import check_script
from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[4] / "docs" / "how-to" / "migrate.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = FENCED.findall(PAGE)
JOB, TRANSFORMS = (text for kind, text in BLOCKS if kind == "python")
(SPEC,) = (text for kind, text in BLOCKS if kind == "yaml")
(COMPARED,) = (text for kind, text in BLOCKS if kind == "sql")
IN_PYTHON = SPEC[: SPEC.index("views:\n  per_hour")] + SPEC[SPEC.index("queries:") :]
ROWS = (
    '{"page": "a", "user": "u1", "viewed_at": "2026-01-01 12:01:00"}\n'
    '{"page": "a", "user": "u2", "viewed_at": "2026-01-01 12:59:00"}\n'
    '{"page": null, "user": "u2", "viewed_at": "2026-01-01 12:59:00"}\n'
    '{"page": "b", "user": "u1", "viewed_at": "2026-01-01 12:30:00"}\n'
    '{"page": "b", "user": "u1", "viewed_at": "2026-01-01 14:30:00"}\n'
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "views").mkdir(parents=True)
    (tmp_path / "in" / "views" / "one.json").write_text(ROWS)
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path


def test_the_page_tells_what_is_found_in_the_job(spark: SparkSession, project: Path) -> None:
    assert (project / "job.py").is_file()

    checked = check_script(spark, Path("job.py"))

    assert [(finding.code, finding.message in PAGE) for finding in checked.findings] == [("MS207", True)]


@pytest.mark.parametrize("spec", [SPEC, IN_PYTHON], ids=["SQL", "Python"])
def test_the_spec_gives_what_the_job_gives(spark: SparkSession, project: Path, spec: str) -> None:
    if spec == IN_PYTHON:
        (project / "transforms.py").write_text(TRANSFORMS)
    loaded = load_text("pipeline.yml", spec, project, {})
    assert loaded.pipeline is not None
    assert not check(loaded, spark).has_errors

    # The tests' JVM was started in another folder.
    job = re.sub(r'"(in|lake|checkpoints)/', rf'"{project.as_posix()}/\1/', JOB)
    exec(compile(job, "job.py", "exec"), {})
    events = EventBus()
    assert run_pipeline(spark, loaded.pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()

    where = project.as_posix()
    compared = COMPARED.replace("`lake/", f"`{where}/lake/")
    assert spark.sql(compared).collect() == []
    rows = spark.read.parquet(f"{where}/lake/new").orderBy("page").collect()
    assert [(row.page, row.views, row.users) for row in rows] == [("a", 2, 2), ("b", 1, 1)]
