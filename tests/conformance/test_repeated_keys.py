"""Deletions and rows of one key: keyed kinds agree on a batch, and no table depends on where a batch ends."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import sweep
from conformance.targets import DELETING, Place
from delta_tables import read_rows
from local_frames import create_frame
from millstream.connectors import registry
from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.connectors.api.writer import Writer

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

Change = tuple[int, int, str]
"""Key, sequence, and `I` or `D`."""

FIRST: list[Change] = [(1, 1, "I"), (2, 1, "D"), (3, 1, "D"), (4, 1, "I")]
SECOND: list[Change] = [(1, 2, "D"), (2, 2, "I"), (3, 2, "D"), (4, 1, "I")]
TWO = [FIRST, SECOND]
THREE = [FIRST[:2], [*SECOND[:2], *FIRST[2:]], SECOND[2:]]
LEFT = [2, 4]
"""The keys that are left when each change is applied in the order of its sequence."""

MERGE = {"merge_on": ["id"], "delete_when": "op = 'D'"}
CDC = {"cdc": {"keys": ["id"], "sequence_by": "seq", "apply_as_deletes": "op = 'D'"}}


class Keyed:
    """A writer of a keyed kind into a fresh table, and the keys that the table holds."""

    def __init__(self, kind: str, settings: dict[str, Any], place: Place) -> None:
        places: dict[str, dict[str, Any]] = {
            "delta": {"path": str(place.folder / place.name)},
            "postgres": {"url": place.stack.postgres, "table": place.name, "ledger_schema": place.name},
        }
        self.sink = registry.sinks()[kind].model_validate({**places[kind], **settings})
        self.place, self.spark = place, place.spark
        self.keys: Callable[[], list[int]] = getattr(self, f"_{kind}")

    def opened(self) -> Writer:
        writer = self.sink.writer(SinkIdentity("shop", "orders", "one", "orders", OutputMode.APPEND))
        writer.open(self.spark, create_frame(self.spark, [], COLUMNS).schema)
        return writer

    def _delta(self) -> list[int]:
        return [id_ for (id_,) in read_rows(self.sink.target(), "id")]

    def _postgres(self) -> list[int]:
        import psycopg

        with psycopg.connect(self.place.stack.postgres) as connection:
            return [row[0] for row in connection.execute(f"SELECT id FROM {self.place.name}")]


COLUMNS = "id INT, seq INT, op STRING"


@pytest.fixture
def keyed(
    tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest
) -> Callable[[str, dict[str, Any]], Keyed]:
    return lambda kind, settings: Keyed(kind, settings, Place(tmp_path, spark, request))


def write_batches(writer: Writer, spark: SparkSession, batches: list[list[Change]]) -> None:
    for number, batch in enumerate(batches):
        writer.write(create_frame(spark, batch, COLUMNS).coalesce(1), number)


@pytest.mark.parametrize("kind", sorted(DELETING))
def test_by_their_sequence_changes_come_to_one_table_wherever_a_batch_ends(
    kind: str, keyed: Callable[..., Keyed], spark: SparkSession
) -> None:
    # Any order and any batches are drawn in test_delta_changes.py and test_postgres_changes.py.
    for batches in ([FIRST + SECOND], [SECOND, FIRST], *([THREE] if sweep.WHOLE else [])):
        table = keyed(kind, CDC)
        with closing(table.opened()) as writer:
            write_batches(writer, spark, batches)

        assert sorted(table.keys()) == LEFT


@pytest.mark.parametrize("kind", sorted(DELETING))
def test_without_a_sequence_a_key_that_comes_twice_in_a_batch_is_refused_deletions_too(
    kind: str, keyed: Callable[..., Keyed], spark: SparkSession
) -> None:
    with ExitStack() as open_writers:
        for batches in (TWO, THREE):
            table = keyed(kind, MERGE)
            writer = open_writers.enter_context(closing(table.opened()))
            if batches is TWO:
                for first, second, output in zip(FIRST, SECOND, DELETIONS, strict=True):
                    with pytest.raises(MillstreamError, match="same key") as error:
                        write_batches(writer, spark, [[first, second]])
                    assert error.value.what == (
                        f"2 rows of one batch have the same key for {TABLE[kind]} {table.sink.target()}: "
                        f"id = {first[0]}{output}"
                    )
                    assert "cdc with sequence_by" in error.value.fix
            write_batches(writer, spark, batches)

            assert sorted(table.keys()) == LEFT


TABLE = {"delta": "Delta table", "postgres": "table"}
DELETIONS = ["; 1 of them deletes", "; 1 of them deletes", "; 2 of them delete", ""]
