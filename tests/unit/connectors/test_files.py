"""Settings of the sources and sinks of files, and the folder a batch is published in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.batch_ledger import UNTOLD
from millstream.connectors.api.values.sandbox import InputRecord
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.files import layouts, manifest, publish
from millstream.connectors.files.sandbox_io import to_arrow_table
from millstream.connectors.files.sink import CsvSink, ParquetSink
from millstream.connectors.files.sink_folder import FileEntry, LocalPlace, require_writable
from millstream.connectors.files.source import CsvSource, JsonSource, ParquetSource
from millstream.diagnostics.failure import CheckpointError, NotReady
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

OWNER = SinkIdentity("shop", "orders", "3f0c", "parquet:orders", OutputMode.APPEND)


def messages(**settings: Any) -> list[str]:
    return [problem.message for problem in JsonSource.model_validate({"path": "data", **settings}).problems()]


def test_settings_have_sparks_names() -> None:
    source = JsonSource.model_validate(
        {
            "path": "data",
            "max_files_per_trigger": 2,
            "max_file_age": "1 day",
            "latest_first": True,
            "recursive_file_lookup": True,
            "path_glob_filter": "*.json",
            "clean_source": "archive",
            "archive_to": "done",
            "options": {"multiLine": True},
        }
    )

    assert source._options(static=False) == {
        "multiLine": "true",
        "recursiveFileLookup": "true",
        "pathGlobFilter": "*.json",
        "maxFilesPerTrigger": "2",
        "maxFileAge": "86400000ms",
        "latestFirst": "true",
        "cleanSource": "archive",
        "sourceArchiveDir": "done",
    }


def test_a_table_has_no_options_of_a_stream() -> None:
    source = CsvSource.model_validate({"path": "data", "max_files_per_trigger": 2, "header": True})

    assert source._options(static=True) == {
        "header": "true",
        "enforceSchema": "false",
        "sep": ",",
    }


def test_an_option_with_a_field_of_its_own_is_a_problem() -> None:
    assert messages(options={"maxFilesPerTrigger": 1}) == ["option 'maxFilesPerTrigger' has its own setting"]


def test_an_archive_needs_a_place() -> None:
    assert messages(clean_source="archive") == ["clean_source: archive needs a folder"]
    assert messages(archive_to="done") == ["archive_to has no effect without clean_source: archive"]


def test_an_age_that_spark_ignores_is_a_problem() -> None:
    assert messages(latest_first=True, max_file_age="1 day", max_files_per_trigger=1) == [
        "Spark ignores max_file_age when latest_first and max_files_per_trigger are set"
    ]


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="that parquet reads does not exist"):
        ParquetSource(path=str(tmp_path / "none")).probe()


def test_bytes_of_a_proof_are_those_of_its_json() -> None:
    table = to_arrow_table([InputRecord(b'{"raw": "AQI="}', b"")], {"raw": "binary"})

    assert table.to_pylist() == [{"raw": b"\1\2"}]


def test_a_pattern_of_folders_is_left_to_spark(tmp_path: Path) -> None:
    assert ParquetSource(path=str(tmp_path / "2026-*")).probe() == {}


@pytest.mark.parametrize("name", ["x[1]", "{a,b}", "a*b", "a?b"])
def test_a_folder_whose_name_spark_takes_for_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name / "in").mkdir(parents=True)

    with pytest.raises(NotReady, match="as a pattern"):
        ParquetSource(path=str(tmp_path / name / "in")).probe()


def test_files_sinks_are_exactly_once() -> None:
    assert ParquetSink(path="lake").guarantee(OutputMode.APPEND)[0] is Guarantee.EXACTLY_ONCE


def test_a_compression_that_the_format_lacks_is_a_problem() -> None:
    problems = CsvSink(path="lake", compression="brotli").problems(OutputMode.APPEND)

    assert [problem.message for problem in problems] == ["csv does not support compression 'brotli'"]


def test_a_partition_column_named_twice_is_a_problem() -> None:
    problems = ParquetSink(path="lake", partition_by=("day", "day")).problems(OutputMode.APPEND)

    assert [problem.field for problem in problems] == ["partition_by"]


def test_a_file_where_a_folder_is_to_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")

    with pytest.raises(NotReady, match="is a file, but must be a folder"):
        require_writable(Location(str(tmp_path / "lake")))


def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")

    with pytest.raises(NotReady, match="cannot be written"):
        require_writable(Location(str(tmp_path / "lake/orders")))


def test_final_names_tell_query_and_batch_and_keep_their_endings() -> None:
    plan_manifest = manifest.plan_manifest(
        OWNER,
        12,
        "staging/x",
        [FileEntry("day=a.b/part-00000-u-c000.snappy.parquet", 3), FileEntry("part-1.csv.gz", 4)],
        UNTOLD,
    )

    own = manifest.writer_tag(OWNER)
    assert [move.name for move in plan_manifest.files] == [
        f"day=a.b/part-{own}-000012-0000.snappy.parquet",
        f"part-{own}-000012-0001.csv.gz",
    ]


def test_a_manifest_is_created_once(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    first = publish.commit_manifest(place, OWNER, 3, "staging/one", [], UNTOLD)

    second = publish.commit_manifest(place, OWNER, 3, "staging/two", [], UNTOLD)

    assert second == first
    assert second.staging == "staging/one"


def test_creating_a_file_leaves_no_draft(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    place.create("a.json", "1")

    assert not place.create("a.json", "2")
    assert place.names("") == ["a.json"]
    assert place.text("a.json") == "1"


def test_the_ledger_of_a_folder_has_the_newest_batch_of_its_writer(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    for batch in (9, 10):
        publish.commit_manifest(place, OWNER, batch, "staging/one", [], UNTOLD)

    assert [entry.batch for entry in manifest.list_entries(place, OWNER)] == [10]


def test_anothers_manifest_is_refused(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    other = manifest.Manifest("other/parquet:x", 3, "staging/one", ())
    place.create(f"{manifest.manifest_folder(OWNER)}/3.json", other.text())

    with pytest.raises(CheckpointError, match="was written by other/parquet:x"):
        manifest.read_manifest(place, OWNER, 3)


def attempt(place: LocalPlace, batch: int, *names: str) -> tuple[str, list[FileEntry]]:
    """A batch that is staged and not committed."""
    home = publish.staging_folder(OWNER, batch)
    for name in names:
        (place.root / home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / home / name).write_text("row")
    return home, [FileEntry(name, 3) for name in names]


def list_files(place: LocalPlace) -> set[str]:
    return {path.name for path in place.root.glob("*.json")}


@pytest.mark.parametrize("dies", [False, True])
def test_a_run_that_stood_still_while_hundreds_of_batches_were_committed_adds_no_file(
    dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "KEEP", 2)
    place = LocalPlace(tmp_path)
    position, goes_on = layouts.RenamedFiles(place, OWNER), layouts.RenamedFiles(place, OWNER)
    position.open()
    goes_on.open()
    for batch in range(8):
        goes_on.commit(batch, *attempt(place, batch, "part.json"), UNTOLD)
    before = list_files(place)
    assert len(before) == 8

    home, file_entries = attempt(place, 1, "part.json", "another.json")
    if dies:
        publish.commit_manifest(place, OWNER, 1, home, file_entries, UNTOLD)
    else:
        assert not position.commit(1, home, file_entries, UNTOLD)
    files = layouts.RenamedFiles(place, OWNER)
    files.open()

    assert list_files(place) == before
    assert files.has_batch(1)
    assert manifest.read_manifest(place, OWNER, 1) is None
    assert files.commit(8, *attempt(place, 8, "part.json"), UNTOLD)
