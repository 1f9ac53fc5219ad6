"""What a task of the foreach sink does with its rows, and what a function of batches is given."""

from __future__ import annotations

import pickle

import pytest

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.foreach.sink import ForeachSink
from millstream.connectors.foreach.writer import ForeachWriter, partition_function
from millstream.connectors.foreach_batch.sink import ForeachBatchSink
from millstream.connectors.foreach_batch.writer import Batch
from millstream.diagnostics.failure import NotReady
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

told: list[object] = []


class Told:
    """Keeps what it is told."""

    wanted = True

    def __init__(self) -> None:
        told.clear()

    def open(self, partition_id: int, epoch_id: int) -> bool:
        told.append(("open", partition_id, epoch_id))
        return self.wanted

    def process(self, row: object) -> None:
        if row == "bad":
            raise ValueError(row)
        told.append(row)

    def close(self, error: Exception | None) -> None:
        told.append(("close", type(error).__name__))


def test_a_class_is_opened_given_each_row_and_closed() -> None:
    counted = list(partition_function(Told, 7)(2, ["a", "b"]))

    assert told == [("open", 2, 7), "a", "b", ("close", "NoneType")]
    assert counted == [2]


def test_an_error_is_told_to_close_and_fails_the_task() -> None:
    with pytest.raises(ValueError, match="bad"):
        list(partition_function(Told, 7)(0, ["a", "bad", "b"]))

    assert told[1:] == ["a", ("close", "ValueError")]


def test_a_partition_that_open_does_not_want_is_read_to_its_end_and_not_handed_over() -> None:
    class Unwanted(Told):
        wanted = False

    rows = iter(["a", "b"])
    counted = list(partition_function(Unwanted, 7)(0, rows))

    assert told == [("open", 0, 7), ("close", "NoneType")]
    assert (counted, list(rows)) == ([0], [])


def test_open_and_close_may_be_left_out() -> None:
    visited: list[str] = []

    class Plain:
        def process(self, row: str) -> None:
            visited.append(row)

    assert list(partition_function(Plain, 0)(0, ["a"])) == [1]
    assert visited == ["a"]


def test_a_function_gets_each_row() -> None:
    visited: list[str] = []

    assert list(partition_function(visited.append, 0)(0, ["a", "b"])) == [2]
    assert visited == ["a", "b"]


def test_a_class_without_process_is_refused() -> None:
    class Odd:
        pass

    writer = ForeachWriter(Odd, SinkIdentity("shop", "q", "id", "foreach:x", OutputMode.APPEND))

    with pytest.raises(NotReady, match="process"):
        writer.open(None, None)  # type: ignore[arg-type]


def test_a_batch_is_its_number_and_says_whose_it_is() -> None:
    batch = pickle.loads(pickle.dumps(Batch(7, "shop", "orders", "id")))

    assert (batch, f"{batch}", batch.batch_id) == (7, "7", 7)
    assert (batch.pipeline, batch.query, batch.query_id) == ("shop", "orders", "id")


def test_a_function_finds_what_the_spec_tells_it_and_nobody_else_sees_a_password() -> None:
    sink = ForeachBatchSink.model_validate(
        {
            "function": "deliveries:store",
            "options": {"url": "postgresql://ann:hidden@db/shop", "path": "lake"},
        }
    )
    batches: list[Batch] = []
    identity = SinkIdentity("shop", "orders", "id", "foreach_batch:deliveries:store", OutputMode.APPEND)

    sink.bound({"function": lambda _, batch: batches.append(batch)}).writer(identity).write(None, 7)  # type: ignore[arg-type]

    assert batches == [7]
    assert batches[0].options == {"url": "postgresql://ann:hidden@db/shop", "path": "lake"}
    assert "hidden" not in sink.model_dump_json()
    assert pickle.loads(pickle.dumps(batches[0])).options == {}


def test_only_a_function_that_is_declared_idempotent_is_taken_for_that() -> None:
    plain = ForeachBatchSink(function="deliveries:store")
    sure = ForeachBatchSink(function="deliveries:store", idempotent=True)

    assert plain.guarantee(OutputMode.APPEND)[0] is Guarantee.AT_LEAST_ONCE
    assert sure.guarantee(OutputMode.APPEND)[0] is Guarantee.EFFECTIVELY_ONCE
    assert ForeachSink(function="a:b").guarantee(OutputMode.UPDATE)[0] is Guarantee.AT_LEAST_ONCE
