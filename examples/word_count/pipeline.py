"""The pipeline of pipeline.yml in Python: the step that both queries share is written once."""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import millstream as ms

word_count = ms.declare(
    "word_count",
    defaults={"trigger": "2 seconds", "checkpoints": os.environ.get("STATE_DIR", ".millstream/checkpoints")},
)
word_count.source("lines", ms.socket(port=int(os.environ.get("PORT", "9999"))))
word_count.source("pages", ms.text(path="data/pages", max_files_per_trigger=1))


def counted(lines: DataFrame) -> DataFrame:
    """Each word of some lines, and how often it is there."""
    words = lines.select(F.explode(F.split(F.lower("value"), r"[^\p{L}]+")).alias("word"))
    return words.where("word <> ''").groupBy("word").count()


@word_count.view
def counts(lines: DataFrame) -> DataFrame:
    """The words that were typed."""
    return counted(lines)


@word_count.view
def page_counts(pages: DataFrame) -> DataFrame:
    """The words of the files."""
    return counted(pages)


word_count.query("counts", output_mode="complete", to=ms.console(num_rows=50))
word_count.query(
    "page_counts",
    output_mode="complete",
    to=[ms.console(num_rows=5), ms.delta(f"{os.environ.get('LAKE', 'lake')}/page_counts")],
)
