"""Errors of Hadoop's client as Python's: a file system that is away is not taken for a file that is missing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError

from millstream.spark.cluster.hadoop_file_system import _as_os_errors

KILLED = "DestHost:destPort localhost:8020 , Failed on local exception: java.io.IOException: "


class Raised(Py4JJavaError):
    """What Py4J raises for a Java exception, without a JVM."""

    def __init__(self, name: str, message: str) -> None:
        java_class = SimpleNamespace(getSimpleName=lambda: name)
        self.java_exception = SimpleNamespace(getClass=lambda: java_class, getMessage=lambda: message)
        self._text = f"java.io.{name}: {message}"

    def __str__(self) -> str:
        return self._text


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("ConnectException", "Connection refused", ConnectionError),
        ("EOFException", "End of File Exception between local host", ConnectionError),
        ("IOException", f"{KILLED}Connection reset by peer", ConnectionError),
        ("IOException", f"{KILLED}Broken pipe", ConnectionError),
        ("IOException", "the last block does not have enough number of replicas.", ConnectionError),
        ("IOException", "All datanodes [127.0.0.1:1] are bad. Aborting...", ConnectionError),
        ("FileNotFoundException", "hdfs://nn/a", FileNotFoundError),
        ("AlreadyBeingCreatedException", "hdfs://nn/a", FileExistsError),
        ("AccessControlException", "Permission denied", PermissionError),
        ("IOException", "the quota is exceeded", OSError),
    ],
)
def test_an_exception_of_hadoops_client_is_the_error_of_python_that_says_the_same(
    name: str, message: str, kind: type[OSError]
) -> None:
    with pytest.raises(OSError, match=message[:20].replace("[", ".")) as caught, _as_os_errors():
        raise Raised(name, message)

    assert type(caught.value) is kind
