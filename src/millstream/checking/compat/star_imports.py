"""What scripts import from `pyspark.sql.functions` in Spark 3, and no longer in Spark 4."""

from __future__ import annotations

import importlib.util
import typing
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import Column, DataFrame, functions, types

if TYPE_CHECKING:
    from millstream.checking.scripts.interception.monkeypatch import Patches

# Spark 3 exports every function of the module. Spark 4 lists what it exports, without these deprecated ones.
ONLY_IN_SPARK_3 = frozenset(
    {
        "approxCountDistinct", "bitwiseNOT", "countDistinct", "shiftLeft", "shiftRight", "shiftRightUnsigned",
        "sumDistinct", "toDegrees", "toRadians",
    }
)  # fmt: skip
# Without a list, `import *` also imports what the module imports for itself: in the last release of Spark 3, these.
_CLASSES = {"Column": Column, "DataFrame": DataFrame, "SparkContext": pyspark.SparkContext}
_TYPES = ("ArrayType", "DataType", "StringType", "StructType")
_HINTS = (
    "Any",
    "Callable",
    "Dict",
    "Iterable",
    "List",
    "Optional",
    "Tuple",
    "Type",
    "Union",
    "cast",
    "overload",
)
_MODULES = ("decimal", "functools", "inspect", "sys", "warnings")


def restore_names(patches: Patches) -> None:
    """Let a script import from the module, by name and by `import *`, what it can import from that of Spark 3."""
    own: dict[str, object] = {
        **_CLASSES,
        **{name: getattr(types, name) for name in _TYPES},
        **{name: getattr(typing, name) for name in _HINTS},
        **{name: importlib.import_module(name) for name in _MODULES},
    }
    if importlib.util.find_spec("numpy") is not None:
        own["np"] = importlib.import_module("numpy")
    for name, value in (own | {"since": pyspark.since}).items():
        patches.set(functions, name, value)
    patches.set(functions, "__all__", [*functions.__all__, *sorted(ONLY_IN_SPARK_3 | own.keys())])
