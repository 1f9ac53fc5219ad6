"""MS553: what happens to an invalid message, by what the query writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import Column
from millstream.analysis.rules import ms553_unchecked_json

if TYPE_CHECKING:
    from conftest import Plans
    from millstream.analysis.query.plan_model import Expression

ORIGINS = frozenset({("orders", "value")})


def describe_loss(plans: Plans, *written: str) -> str:
    """What the finding says of `SELECT written… FROM (SELECT raw, from_json(raw, …) AS data)`; raw is a cast."""

    def add_name(name: str, expression: Expression) -> Expression:
        return plans.call("alias", expression, settings={"name": name})

    below = plans.stream(plans.column("value", "binary"))
    raw = Column("raw", "string", origins=ORIGINS)
    text = plans.project(below, (raw, add_name("raw", plans.call("cast", plans.leaf(below.columns[0])))))
    data = Column("data", "struct<user:string>", origins=ORIGINS)
    decoded = add_name("data", plans.call("from_json", plans.leaf(raw), kind="struct<user:string>"))
    both = plans.project(text, (raw, plans.leaf(raw)), (data, decoded))
    columns = [column for column in (raw, data) if column.name in written]
    root = plans.project(both, *((column, plans.leaf(column)) for column in columns))
    (finding,) = ms553_unchecked_json.judge(plans.query(root), None)
    assert finding.why is not None
    return finding.why


@pytest.mark.parametrize(
    ("written", "loss"),
    [
        (("data",), "the message is lost, and NULLs go into the sink"),
        (("raw", "data"), "NULLs go into the sink, with the message in 'raw'"),
    ],
)
def test_a_message_is_lost_unless_its_text_is_written_too(
    plans: Plans, written: tuple[str, ...], loss: str
) -> None:
    silence = "Spark gives no error for such a message and does not count it"
    assert describe_loss(plans, *written) == f"{silence}: {loss}"
