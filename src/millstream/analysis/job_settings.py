"""What rules about settings read: the settings of a Spark session, and sources without a batch limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Edit, Span


@dataclass(frozen=True)
class SparkSetting:
    """A setting of a Spark session."""

    key: str
    value: str
    """In the form that Spark stores: `true` and `false` in lower case."""
    span: Span | None


@dataclass(frozen=True)
class UnlimitedSource:
    """A stream whose first batch has no limit, with a query that stores its rows."""

    name: str
    first_batch: str
    """Describes the batch: `all records of topic 'orders'`."""
    limit: str
    """The setting of a limit, as the user writes it."""
    span: Span | None
    query: str
    edit: Edit | None = None


@dataclass(frozen=True)
class JobSettings:
    """The settings of a spec or of a script."""

    spark: tuple[SparkSetting, ...] = ()
    unlimited: tuple[UnlimitedSource, ...] = ()
