"""Keep a script from calling the JVM directly: it could delete files, start programs and open connections there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import py4j
import pyspark
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

import millstream
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import Doubt

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checking.scripts.interception.monkeypatch import Patches

# Code that calls the JVM for a script's calls of Spark's API.
_OWN_CODE = tuple(f"{Path(str(module.__file__)).parent}/" for module in (pyspark, py4j, millstream))


def install(patches: Patches) -> None:
    """Replace the attributes by which Python code reaches the JVM, for all code but Spark's own."""
    patches.wrap(SparkContext, "__getattribute__", _guarded(("_jvm", "_jsc", "_gateway")))
    patches.wrap(SparkSession, "__getattribute__", _guarded(("_jvm", "_jsc", "_jsparkSession")))
    patches.wrap(DataFrame, "__getattribute__", _guarded(("_jdf",)))


def _guarded(names: tuple[str, ...]) -> Callable[..., Any]:
    """Return a replacement that answers with a placeholder for these names, except to Spark's own code."""

    def attribute(original: Callable[[Any, str], Any], owner: Any, name: str) -> Any:
        # The caller is two frames above: between them is the function of `Patches`.
        if name in names and not sys._getframe(2).f_code.co_filename.startswith(_OWN_CODE):
            span = call_sites.current_span()
            return Absent(
                Doubt(f"{name} of Spark", "a check calls the JVM only through PySpark's own functions", span)
            )
        return original(owner, name)

    return attribute
