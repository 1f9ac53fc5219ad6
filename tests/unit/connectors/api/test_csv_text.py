"""Lines of CSV as Spark's reader takes them; `tests/spark/testing/test_fed_values.py` reads them with Spark."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connectors.api.csv_text import format_line


@pytest.mark.parametrize(
    ("values", "options", "line"),
    [
        (["a", 1, 2.5, True, None], {}, '"a",1,2.5,true,'),
        (['say "hi"', "a\\b", "x,y", ""], {}, r'"say \"hi\"","a\\b","x,y",""'),
        (["a", None], {"SEP": "||", "nullValue": "-"}, '"a"||-'),
        (["a", "b"], {"delimiter": r"\t"}, '"a"\t"b"'),
        (["it's", 'a"b'], {"quote": "'"}, r"""'it\'s','a"b'"""),
        (['a"b', "a\\b"], {"escape": '"'}, '"a""b","a\\b"'),
        (["a", 1], {"quote": ""}, "a,1"),
        ([None], {}, '""'),
    ],
)
def test_a_line_has_the_options_of_its_reader(values: list[Any], options: dict[str, str], line: str) -> None:
    assert format_line(values, options) == line


@pytest.mark.parametrize(
    ("text", "options"), [("a,b", {"quote": ""}), ("a\nb", {"quote": ""}), ('a"b', {"escape": ""})]
)
def test_a_text_that_cannot_be_written_is_refused(text: str, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="quote"):
        format_line([text], options)
