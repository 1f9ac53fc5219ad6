"""JSON paths of Databricks' SQL."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.json_paths import replace_json_paths


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("cast(body:city as int) AS city", "cast(get_json_object(body, '$.city') as int) AS city"),
        ("e.body:a.b[0].c", "get_json_object(e.body, '$.a.b[0].c')"),
        ("a::int, :name, '12:30', \"x:y\"", "a::int, :name, '12:30', \"x:y\""),
    ],
)
def test_a_path_becomes_a_function(text: str, replaced: str) -> None:
    assert replace_json_paths(text) == replaced
