"""Expressions of a plan as values, from the entries of Spark's JSON."""

from __future__ import annotations

import pytest

from millstream.checking.query_plan.expressions.expressions import Expressions, ParsedExpression
from millstream.checking.query_plan.source_spans import SourcePlaces


@pytest.mark.parametrize("kind", ["JsonToStructs", "CsvToStructs"])
def test_a_decoded_message_has_the_type_of_its_schema(kind: str) -> None:
    fields = [{"name": name, "type": "string"} for name in ("user", "_corrupt_record")]
    parsed = ParsedExpression(kind, {"schema": {"type": "struct", "fields": fields}})

    expression = Expressions({}, SourcePlaces(), None).value(parsed)

    assert expression.type == "struct<user:string,_corrupt_record:string>"
