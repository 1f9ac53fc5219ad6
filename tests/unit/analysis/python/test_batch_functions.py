"""The function of a foreachBatch is found in its file, and its helpers in theirs."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from millstream.analysis.python import foreach_batch
from unit.analysis.python.batch_code import JDBC, code


def test_a_function_is_found_by_its_object(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(f"import functools\ndef each(batch, number):\n    {JDBC}\n")
    space: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)

    result = foreach_batch.read_function(space["each"], lambda path: path.rpartition("/")[2])

    assert result is not None
    assert result.span is not None
    assert (result.name, result.span.file, result.span.line) == ("each", "job.py", 2)


def test_a_helper_of_another_file_is_read_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "sink.py").write_text(
        "def store(rows):\n    put(rows)\n\n\ndef put(rows):\n    rows.write.mode('append').parquet('a')\n"
    )
    (tmp_path / "job.py").write_text("def each(batch, number):\n    store(batch)\n")
    space: dict[str, object] = {}
    for file in (tmp_path / "sink.py", tmp_path / "job.py"):
        exec(compile(file.read_text(), str(file), "exec"), space)

    result = foreach_batch.read_function(space["each"], lambda path: path.rpartition("/")[2])

    assert result is not None
    assert not result.is_opaque
    assert [(write.span.file, write.span.line) for write in result.writes if write.span] == [("sink.py", 6)]


def test_a_helper_of_an_installed_package_is_out_of_sight(tmp_path: Path) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "sink.py").write_text("def store(rows):\n    rows.write.mode('append').parquet('a')\n")
    (tmp_path / "job.py").write_text("def each(batch, number):\n    store(batch)\n")
    space: dict[str, object] = {}
    for file in (package / "sink.py", tmp_path / "job.py"):
        exec(compile(file.read_text(), str(file), "exec"), space)

    result = foreach_batch.read_function(space["each"])

    assert result is not None
    assert result.is_opaque


def test_a_lambda_is_read_too(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(f"each = lambda batch, number: {JDBC}\n")
    space: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)

    result = foreach_batch.read_function(space["each"])

    assert result is not None
    assert [write.format for write in result.writes] == ["jdbc"]


@pytest.mark.parametrize("odd", [print, functools.partial(print, 1), 5])
def test_what_has_no_source_is_not_judged(odd: object) -> None:
    assert foreach_batch.read_function(odd) is None


def test_a_helper_that_calls_itself_ends() -> None:
    assert code("store(batch)", "\ndef store(rows):\n    store(rows)\n").is_opaque


def test_a_function_is_found_by_its_module_and_name_without_being_run(tmp_path: Path) -> None:
    (tmp_path / "deliveries.py").write_text(
        "raise SystemExit\n\n\n"
        "def store(frame, batch_id):\n"
        "    try:\n"
        "        frame.write.format('delta').mode('append').save('lake')\n"
        "    except Exception:\n"
        "        pass\n\n\n"
        "class Sender:\n"
        "    def open(self, partition_id, epoch_id):\n"
        "        return (partition_id, epoch_id) not in self.seen\n"
    )

    code = foreach_batch.read_reference("deliveries:store", tmp_path, lambda path: Path(path).name)
    sender = foreach_batch.read_reference("deliveries:Sender", tmp_path)

    assert code is not None
    assert [span.line for span in code.swallowing_clauses] == [7]
    assert code.span is not None
    assert code.span.file == "deliveries.py"
    assert sender is not None
    assert sender.partition_epoch_use is not None
    assert foreach_batch.read_reference("deliveries:other", tmp_path) is None
    assert foreach_batch.read_reference("nowhere:store", tmp_path) is None


def test_a_file_may_have_f_strings_of_a_newer_python() -> None:
    text = "def each(batch, number):\n    print(f\"{batch[\"id\"]}\")\n    batch.write.mode('append').parquet('a')\n"

    read = foreach_batch.read_source(text, "job.py", 1, "each")

    assert read is not None
    assert [write.span.line for write in read.writes if write.span] == [3]
