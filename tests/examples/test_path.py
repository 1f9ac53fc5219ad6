"""The learner's path leads over every example there is, from the first window to the whole system."""

from __future__ import annotations

import re
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER = (
    "starter",
    "word_count",
    "user_events",
    "activity",
    "sensors",
    "clickstream",
    "dedup",
    "order_matching",
    "ad_ctr",
    "multi_sink",
    "table_stream",
    "cdc_orders",
    "user_status",
    "ecommerce",
)


def test_the_path_leads_over_every_example_in_its_order() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    path = text.partition("## A path for a learner")[2]
    steps = re.findall(r"^(\d+)\. \[\w+\]\((\w+)/README.md\): \S", path, re.MULTILINE)
    there = {folder.parent.name for folder in EXAMPLES.glob("*/pipeline.yml")}

    assert there == set(ORDER)
    assert [name for _, name in steps] == list(ORDER)
    assert [int(number) for number, _ in steps] == list(range(1, len(there) + 1))


def test_the_table_tells_of_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| \[(\w+)\]\(\1/README.md\) \|", text, re.MULTILINE))

    assert rows == {folder.parent.name for folder in EXAMPLES.glob("*/pipeline.yml")}
