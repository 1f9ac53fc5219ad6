"""Problems of settings, and resources that must exist outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Problem:
    """A problem with a setting, found without connecting: the field, the message, the reason and the fix.

    A nested field is written with a dot, `cdc.keys`. `key` is the key inside a field with options. `instead` is the
    value that fixes the problem, as written in a spec.
    """

    field: str | None
    message: str
    fix: str = ""
    why: str = ""
    key: str | None = None
    instead: str | None = None


@dataclass(frozen=True)
class RequiredResource:
    """A resource that must exist outside before a pipeline starts, so that `up` can create it.

    `system` is the connector's folder name, `what` a term of that system ("topic"), and `at` the server's address in
    the spec, empty if there is none.
    """

    system: str
    what: str
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    at: str = ""
