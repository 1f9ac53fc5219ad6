"""The DuckDB sink without Spark: batches are given as Arrow tables, as Spark gives them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from millstream.connectors import registry
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.duckdb import ledger
from millstream.connectors.duckdb.database import open_database
from millstream.connectors.failpoints import VARIABLE
from millstream.diagnostics.failure import CheckpointError, MillstreamError, NotReady, Outage
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from millstream.connectors.api.writer import Writer

APPEND, UPDATE, COMPLETE = OutputMode.APPEND, OutputMode.UPDATE, OutputMode.COMPLETE


@dataclass
class Frame:
    """The part of a DataFrame that the writer uses."""

    table: pa.Table

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self.table


class Spark:
    """A session that makes empty frames."""

    def createDataFrame(self, rows: list[Any], schema: pa.Schema) -> Frame:  # noqa: N802 - Spark's name
        assert rows == []
        return Frame(schema.empty_table())


def rows(*pairs: tuple[str | None, int | None]) -> Frame:
    keys, values = zip(*pairs, strict=True)
    return Frame(pa.table({"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.int64())}))


def writer(
    folder: Path, mode: OutputMode = APPEND, *, checkpoint: str = "one", opened: bool = True, **settings: Any
) -> Writer:
    fields = {"path": str(folder / "shop.duckdb"), "table": "orders", **settings}
    sink = registry.sinks()["duckdb"].model_validate(fields)
    made = sink.writer(SinkIdentity("shop", "orders", checkpoint, "duckdb:orders", mode))
    made.note = lambda batch: BatchMetadata((f'{{"end": {batch}}}',), batch, f"1:{batch}")
    if opened:
        made.open(Spark(), rows(("a", 1)).table.schema)
    return made


def stored(folder: Path, table: str = "orders") -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as connection:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def test_a_repeated_batch_and_an_older_one_change_nothing(tmp_path: Path) -> None:
    first = writer(tmp_path)
    first.write(rows(("a", 1)), 4)

    assert first.write(rows(("a", 1)), 4).is_skipped
    assert writer(tmp_path).write(rows(("x", 9)), 3).is_skipped
    assert stored(tmp_path) == [("a", 1)]


def test_a_run_that_a_later_one_has_replaced_writes_nothing(tmp_path: Path) -> None:
    suspended = writer(tmp_path)
    current = writer(tmp_path)
    current.write(rows(("a", 1)), 0)

    with pytest.raises(CheckpointError, match="newer run of query 'orders'"):
        suspended.write(rows(("z", 9)), 1)
    assert stored(tmp_path) == [("a", 1)]
    assert not current.has_batch(1)


def test_a_run_that_was_replaced_while_it_opens_the_file_does_not_fence_out_the_other(tmp_path: Path) -> None:
    current, replaced = writer(tmp_path), writer(tmp_path, opened=False)
    replaced.checkpoint = tmp_path / "checkpoint"
    lock = tmp_path / "checkpoint" / "_millstream" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"owner": "shop.orders", "pid": 1, "host": "elsewhere", "since": "noon"}))

    with pytest.raises(CheckpointError, match="taken over by"):
        replaced.open(Spark(), rows(("a", 1)).table.schema)

    current.write(rows(("a", 1)), 0)
    assert stored(tmp_path) == [("a", 1)]


def test_a_batch_that_fails_leaves_neither_rows_nor_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = writer(tmp_path)
    monkeypatch.setattr(ledger.DuckdbLedger, "record", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        broken.write(rows(("a", 1)), 0)
    monkeypatch.undo()

    assert stored(tmp_path) == []
    assert broken.write(rows(("a", 1)), 0).rows == 1


def test_a_commit_whose_confirmation_was_lost_is_found_in_the_ledger(tmp_path: Path) -> None:
    unsure = writer(tmp_path)
    unsure.write(rows(("a", 1)), 0)
    unsure._last = None

    assert unsure.write(rows(("a", 1)), 0).is_skipped
    assert stored(tmp_path) == [("a", 1)]


def test_rows_replace_those_of_their_key_and_null_is_a_key(tmp_path: Path) -> None:
    keyed = writer(tmp_path, UPDATE, merge_on="K")
    keyed.write(rows(("a", 1), (None, 2)), 0)
    keyed.write(rows(("a", None), (None, 3), ("b", 4)), 1)

    assert stored(tmp_path) == [("a", None), ("b", 4), (None, 3)]


def test_a_key_that_its_column_rounds_is_the_stored_one(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders (k DECIMAL(9, 2), v BIGINT)")
    keyed = writer(tmp_path, UPDATE, merge_on="k", opened=False)
    batches = [
        Frame(pa.table({"k": keys, "v": [7] * len(keys)})) for keys in ([1.239], [1.239], [2.5, 2.501])
    ]
    keyed.open(Spark(), batches[0].table.schema)

    for batch_id, batch in enumerate(batches[:2]):
        keyed.write(batch, batch_id)
    with pytest.raises(MillstreamError, match=r"2 rows of one batch have the same key .*: k = 2\.50"):
        keyed.write(batches[2], 2)

    assert stored(tmp_path) == [(Decimal("1.24"), 7)]


def test_two_rows_of_one_key_are_refused_by_name(tmp_path: Path) -> None:
    keyed = writer(tmp_path, UPDATE, merge_on="k")

    with pytest.raises(
        MillstreamError, match="2 rows of one batch have the same key for DuckDB table orders: k = a"
    ):
        keyed.write(rows(("a", 1), ("a", 2)), 0)
    assert not keyed.has_batch(0)


def test_a_complete_result_replaces_the_table_and_an_empty_one_empties_it(tmp_path: Path) -> None:
    whole = writer(tmp_path, COMPLETE)
    whole.write(rows(("a", 1), ("b", 2)), 0)
    whole.write(rows(("b", 3)), 1)
    assert stored(tmp_path) == [("b", 3)]

    whole.write(Frame(rows(("a", 1)).table.schema.empty_table()), 2)
    assert stored(tmp_path) == []


def test_a_fresh_checkpoint_learns_whose_rows_are_there_unless_the_table_is_empty(tmp_path: Path) -> None:
    before = writer(tmp_path, table="main.orders")
    before.write(rows(("a", 1)), 7)
    fresh = writer(tmp_path, checkpoint="two", opened=False)

    (entry,) = fresh.last_committed_batches(Spark())
    assert (entry.query_id, entry.batch, entry.note) == ("one", 7, before.note(7))

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("DELETE FROM orders")
    assert fresh.last_committed_batches(Spark()) == ()
    assert [known.batch for known in before.last_committed_batches(Spark())] == [7]


def test_a_table_that_was_dropped_has_no_batch_of_any_writer(tmp_path: Path) -> None:
    first, other = writer(tmp_path), writer(tmp_path, checkpoint="other")
    elsewhere = writer(tmp_path, checkpoint="elsewhere", table="main.refunds")
    for number, each in enumerate((first, other, elsewhere)):
        each.write(rows(("a", 1)), number)
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("DROP TABLE orders")

    assert first.last_committed_batches(Spark()) == ()
    again = writer(tmp_path)
    assert not again.has_batch(0)
    assert not writer(tmp_path, checkpoint="other").has_batch(1)
    assert writer(tmp_path, checkpoint="elsewhere", table="refunds").has_batch(2)
    assert again.write(rows(("a", 1)), 0).rows == 1
    assert stored(tmp_path) == [("a", 1)]


def test_the_ledger_keeps_the_last_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "KEPT", 2)
    made = writer(tmp_path)
    for batch in range(5):
        made.write(rows(("a", batch)), batch)

    assert [made.entry(batch) is not None for batch in range(5)] == [False, False, True, True, True]
    assert made.entry(4).note == made.note(4)


POINTS = ("duckdb.staged", "duckdb.open", "duckdb.committed")
KILLED = """
import os, sys
import pandas  # DuckDB would import it in each of the processes
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_duckdb import rows, writer

writer(Path(sys.argv[2]), opened=False)  # imports what each of them needs
for point in sys.argv[4:]:
    process = os.fork()
    if not process:
        os.environ[sys.argv[3]] = f"{point}=kill@2"
        made = writer(Path(sys.argv[2], point))
        made.write(rows(("a", 1)), 0)
        made.write(rows(("b", 2), ("c", 3)), 1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders by failpoint, each with the file of a process that was killed there in its second batch."""
    folder = tmp_path_factory.mktemp("killed")
    for point in POINTS:
        (folder / point).mkdir()
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(folder), VARIABLE, *POINTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(POINTS)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_around_its_commit_leaves_the_whole_batch_or_nothing(
    point: str, killed: Path
) -> None:
    folder = killed / point
    again = writer(folder, opened=False)
    (entry,) = again.last_committed_batches(Spark())
    again.open(Spark(), rows(("a", 1)).table.schema)
    is_committed = point == "duckdb.committed"

    assert entry.batch == int(is_committed)
    assert again.write(rows(("b", 2), ("c", 3)), 1).is_skipped is is_committed
    assert stored(folder) == [("a", 1), ("b", 2), ("c", 3)]


HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def test_a_file_that_another_process_has_open_is_an_outage(tmp_path: Path) -> None:
    made = writer(tmp_path)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "shop.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Outage, match="another process has the DuckDB file"):
            made.write(rows(("a", 1)), 0)
        other.communicate("")

    assert made.write(rows(("a", 1)), 0).rows == 1


def test_it_is_free_for_other_programs_between_two_batches(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.write(rows(("a", 1)), 0)

    read = "duckdb.connect(sys.argv[1], read_only=True).sql('SELECT * FROM orders').fetchall()"
    command = [sys.executable, "-c", f"import duckdb, sys; print({read})", str(tmp_path / "shop.duckdb")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[('a', 1)]\n"


def test_a_file_of_another_kind_a_folder_and_a_missing_column_are_named(tmp_path: Path) -> None:
    sink = registry.sinks()["duckdb"].model_validate(
        {"path": str(tmp_path / "shop.duckdb"), "table": "orders"}
    )
    sink.probe()
    with open_database(sink.file()) as connection:
        connection.execute("CREATE TABLE orders (k VARCHAR)")
    with pytest.raises(NotReady, match="no column 'v'"):
        writer(tmp_path)

    (tmp_path / "shop.duckdb").write_text("no database" * 1000)
    with pytest.raises(NotReady, match="is not a DuckDB database"):
        sink.probe()
    with pytest.raises(NotReady, match="is a folder"):
        sink.model_copy(update={"path": sink.path.beside(str(tmp_path))}).probe()


def test_a_value_that_the_column_does_not_take_is_a_defect(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders (k INTEGER, v BIGINT, note VARCHAR DEFAULT 'none')")
    made = writer(tmp_path)

    with pytest.raises(MillstreamError, match="rejects a row") as refused:
        made.write(rows(("x", 1)), 0)
    assert not isinstance(refused.value, Outage)
    made.write(rows(("7", 1)), 0)
    assert stored(tmp_path) == [(7, 1, "none")]


def test_the_last_rows_are_shown_first(tmp_path: Path) -> None:
    made = writer(tmp_path, table="sales.orders")
    for batch, key in enumerate("abc"):
        made.write(rows((key, batch)), batch)
    sink = registry.sinks()["duckdb"].model_validate(
        {"path": str(tmp_path / "shop.duckdb"), "table": "sales.orders"}
    )

    assert sink.rows(2) == (["k", "v"], [["c", 2], ["b", 1]])
    with pytest.raises(NotReady, match="no DuckDB table other"):
        sink.into("other").rows(2)


@pytest.mark.parametrize(
    ("settings", "mode", "field"),
    [
        ({"path": "s3://bucket/shop.duckdb"}, APPEND, "path"),
        ({"table": "a.b.c"}, APPEND, "table"),
        ({"table": "Millstream.ledger"}, APPEND, "table"),
        ({"merge_on": ["id", "ID"]}, APPEND, "merge_on"),
        ({}, UPDATE, None),
    ],
)
def test_a_setting_that_cannot_work_is_found_by_the_check(
    settings: dict[str, Any], mode: OutputMode, field: str | None
) -> None:
    sink = registry.sinks()["duckdb"].model_validate({"path": "shop.duckdb", "table": "orders", **settings})

    assert [problem.field for problem in sink.problems(mode)] == [field]
