"""Fetch a plan's JSON from the JVM in pieces that are small enough to arrive without delay."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The JVM's side of the socket writes responses through a buffer of 8,192 bytes and uses Nagle's algorithm. The
# rest of a longer response waits for the acknowledgement of its beginning, which the kernel delays by 40 ms.
PIECE = 8_000


def fetch_plan_json(frame: DataFrame, plan: Any) -> str:
    """Return `plan.toJSON()`, about ten times as fast for a plan of usual size."""
    text = _to_builder(internals.gateway(frame.sparkSession)).apply(plan)
    length = text.length()
    return "".join(text.substring(start, min(start + PIECE, length)) for start in range(0, length, PIECE))


@lru_cache(maxsize=1)
def _to_builder(gateway: Any) -> Any:
    """Return a JVM function from a plan to its JSON in a StringBuilder. Py4J would transfer a String as a whole."""
    java = gateway.jvm.java
    class_of, proxies = java.lang.Class.forName, java.lang.invoke.MethodHandleProxies
    lookup = java.lang.invoke.MethodHandles.publicLookup()
    loader = java.lang.Thread.currentThread().getContextClassLoader()
    tree = class_of("org.apache.spark.sql.catalyst.trees.TreeNode", True, loader)  # noqa: FBT003 - Java's
    text = gateway.new_array(java.lang.Class, 1)
    text[0] = class_of("java.lang.String")
    to_json = lookup.unreflect(tree.getMethod("toJSON", gateway.new_array(java.lang.Class, 0)))
    new_builder = lookup.unreflectConstructor(class_of("java.lang.StringBuilder").getConstructor(text))
    function = class_of("java.util.function.Function")
    json_function, builder_function = (
        proxies.asInterfaceInstance(function, method) for method in (to_json, new_builder)
    )
    return json_function.andThen(builder_function)
