"""Results of a connectivity check, and a checkpoint's record of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ConnectivityFinding:
    """A mismatch with the spec, found by connecting.

    `code` is one of `check --connect` (MS560 to MS579). `field` is the setting concerned, `key` the key inside a
    field with options.
    """

    code: str
    message: str
    field: str | None = None
    why: str = ""
    fix: str = ""
    severity: Severity = Severity.ERROR
    key: str | None = None


@dataclass(frozen=True)
class CheckpointedSource:
    """A checkpoint's record of one of the query's sources.

    `identity` is the source's identity when the query last started. `offsets` is the end of the newest batch, in
    Spark's JSON; None if the source had no data yet.
    """

    query: str
    identity: Mapping[str, str] = field(default_factory=dict)
    offsets: str | None = None
