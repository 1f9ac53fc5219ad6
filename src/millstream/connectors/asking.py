"""What a kind may say once it has asked its server: a remark with a code, and what a checkpoint knows of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Remark:
    """One thing that is not as the spec needs it, found by asking.

    `code` is one of those that `check --connect` gives (MS560 to MS579). `field` is the setting it concerns, `key`
    the key inside it where it holds options.
    """

    code: str
    message: str
    field: str | None = None
    why: str = ""
    fix: str = ""
    severity: Severity = Severity.ERROR
    key: str | None = None


@dataclass(frozen=True)
class Begun:
    """What the checkpoint of a query knows of one of its sources.

    `told` is what the source said of itself when the query last started. `offsets` is where the newest batch ends,
    in Spark's own JSON; None where the source had nothing yet.
    """

    query: str
    told: Mapping[str, str] = field(default_factory=dict)
    offsets: str | None = None
