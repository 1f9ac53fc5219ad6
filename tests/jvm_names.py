"""Ask the JVM once for each class: Py4J asks for every part of a name at every use, and each jar is looked into.

Between small batches that is a seventh of what the JVM computes.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView


def keep() -> None:
    """Let packages and views of a JVM keep what they have found."""
    for kind in (JavaPackage, JVMView):
        _keep(kind)


def _keep(kind: type[Any]) -> None:
    ask = kind.__getattr__

    def look(self: Any, name: str) -> Any:
        actual = ask(self, name)
        # What is no class may become one by an import; a package in lower case does not.
        if isinstance(actual, JavaClass) or (isinstance(actual, JavaPackage) and name.islower()):
            self.__dict__[name] = actual
        return actual

    kind.__getattr__ = look
