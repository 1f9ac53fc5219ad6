"""Let Spark generate code for a query's large batches, and interpret the plans of its small ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

# `benchmarks/code_generation.py` shows the number of rows from which on generated code is the cheaper way.
FEW_ROWS = 20_000

WHOLE_STAGE, FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"
INTERPRETED = {WHOLE_STAGE: "false", FACTORY: "NO_CODEGEN"}


@dataclass
class CodeGeneration:
    """Chooses for one start of one query how its batches are executed.

    Spark compiles the code that it generates, and the JVM compiles it again. For some hundred rows that costs many
    times what the rows cost. Spark plans a batch before anyone knows its rows, so those of the batch before decide.
    Each query has its own session, whose settings each batch reads when it is planned.
    """

    sources: tuple[str, ...] = ()
    """The sources whose records count."""
    follows_rows: bool = True
    """False if the spec's own settings choose between interpreted plans and generated code."""
    is_small: bool = False
    """Whether the next batch is expected to be small."""
    _former: dict[str, str | None] = field(default_factory=dict)

    def follow(self, session: SparkSession, rows: int) -> bool:
        """Choose for the next batch by the rows that the last one has read; return whether the settings have changed.

        `session` is the query's own, which a batch sees.
        """
        is_small = rows <= FEW_ROWS
        if is_small is self.is_small:
            return False
        self.is_small = is_small
        if not self.follows_rows:
            return False
        if is_small:
            self._former = {key: session.conf.get(key, None) for key in INTERPRETED}
        _apply(session, INTERPRETED if is_small else self._former)
        return True


def describe_code_generation(settings: Mapping[str, object]) -> str:
    """Return a sentence about the choice for `run -v` and `explain`."""
    if not choose_code_generation(settings).follows_rows:
        return "Spark generates code as spark.sql.codegen.* of the spec says"
    return (
        f"after a batch of up to {FEW_ROWS:,} records, Spark interprets the plan of the next one; after a larger one "
        "it generates code"
    )


def choose_code_generation(settings: Mapping[str, object], sources: Iterable[str] = ()) -> CodeGeneration:
    """Return the choice for a start of a query of these sources. The spec's own settings come first."""
    is_chosen = any(key.startswith("spark.sql.codegen.") for key in settings)
    return CodeGeneration(tuple(dict.fromkeys(sources)), follows_rows=not is_chosen)


def _apply(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
