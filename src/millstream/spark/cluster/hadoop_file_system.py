"""Files of remote checkpoints through the JVM's Hadoop client, which Spark itself uses for them."""

from __future__ import annotations

import errno
import re
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.remote.file_system import FileStatus, is_on_object_store
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

# Hadoop's own defaults, which `createNonRecursive` has no shorter form for.
_BUFFER = 4096


class HadoopFileSystem:
    """The file systems of Hadoop's configuration, in the JVM of a Spark context. Implements `RemoteFileSystem`."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        # Of the JVM, which outlives the session: a command may read a checkpoint after it has stopped Spark.
        self._configuration = internals.context_configuration(context)
        self._classes: dict[str, Any] = {}

    def status(self, uri: str) -> FileStatus | None:
        """Return what is at a URI, or None."""
        try:
            with _as_os_errors():
                return _convert(self._open(uri).getFileStatus(self._hadoop_path(uri)))
        except FileNotFoundError:
            return None

    def entries(self, uri: str) -> list[tuple[str, FileStatus]]:
        """List the names in a folder."""
        with _as_os_errors():
            statuses = self._open(uri).listStatus(self._hadoop_path(uri))
            return [(str(status.getPath().getName()), _convert(status)) for status in statuses]

    def read(self, uri: str) -> bytes:
        """Return the content of a file."""
        while True:
            # The client of S3 looks for an object and then reads it; another driver may replace it in between.
            with suppress(_ObjectChangedError):
                return self._read(uri)

    def _read(self, uri: str) -> bytes:
        with _as_os_errors():
            stream = self._open(uri).open(self._hadoop_path(uri))
            try:
                return bytes(self._class("org.apache.commons.io.IOUtils").toByteArray(stream))
            finally:
                stream.close()

    def create(self, uri: str, content: bytes) -> None:
        """Create a file in an existing folder, and close it once the data nodes have its content."""
        with _as_os_errors():
            system, path = self._open(uri), self._hadoop_path(uri)
            if is_on_object_store(uri):
                self._writes.write(system, path, bytearray(content), False)  # noqa: FBT003 - "replaces"
                return
            replication, size = system.getDefaultReplication(path), system.getDefaultBlockSize(path)
            stream = system.createNonRecursive(path, False, _BUFFER, replication, size, None)  # noqa: FBT003 - Hadoop's "overwrite"
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    def write(self, uri: str, content: bytes) -> None:
        """Create or replace an object."""
        with _as_os_errors():
            self._writes.write(self._open(uri), self._hadoop_path(uri), bytearray(content), True)  # noqa: FBT003 - "replaces"

    def read_tagged(self, uri: str) -> tuple[str, bytes]:
        """Return the tag of an object and its content, of the same moment."""
        with _as_os_errors():
            tag, text = self._writes.read(self._open(uri), self._hadoop_path(uri))
        return str(tag), str(text).encode()

    def replace(self, uri: str, content: bytes, tag: str) -> None:
        """Replace an object that has this tag."""
        with _as_os_errors():
            self._writes.replace(self._open(uri), self._hadoop_path(uri), bytearray(content), tag)

    def make_folder(self, uri: str, mode: int | None = None) -> None:
        """Create a folder and those above it. The file system's umask applies to those above."""
        with _as_os_errors():
            system, path = self._open(uri), self._hadoop_path(uri)
            if mode is not None and not system.exists(path):
                system.mkdirs(path.getParent())
                system.mkdirs(path, self._class("org.apache.hadoop.fs.permission.FsPermission")(f"{mode:o}"))
            else:
                system.mkdirs(path)

    def rename(self, uri: str, target: str, *, replaces: bool = False) -> None:
        """Rename a file or folder. `FileSystem.rename` would move it into a folder of the target's name."""
        with _as_os_errors():
            system = self._open(uri)
            contexts = self._class("org.apache.hadoop.fs.FileContext")
            context = contexts.getFileContext(system.getUri(), system.getConf())
            context.rename(
                self._hadoop_path(uri), self._hadoop_path(target), self._rename_options(replaces=replaces)
            )

    def delete(self, uri: str) -> None:
        """Delete a file, or a folder with its content."""
        with _as_os_errors():
            self._open(uri).delete(self._hadoop_path(uri), True)  # noqa: FBT003 - Hadoop's "recursive"

    def touch(self, uri: str) -> None:
        """Set the time of a file's last change, in one operation of the name node."""
        with _as_os_errors():
            now = time.time_ns() // 1_000_000
            self._open(uri).setTimes(self._hadoop_path(uri), now, -1)

    def client_process(self) -> int | None:
        """Return the id of the JVM."""
        return int(self._class("java.lang.ProcessHandle").current().pid())

    @property
    def _writes(self) -> Any:
        return self._class("millstream.ConditionalWrites")

    def _open(self, uri: str) -> Any:
        return self._hadoop_path(uri).getFileSystem(self._configuration)

    def _hadoop_path(self, uri: str) -> Any:
        return self._class("org.apache.hadoop.fs.Path")(uri)

    def _rename_options(self, *, replaces: bool) -> Any:
        options = self._class("org.apache.hadoop.fs.Options$Rename")
        array = self._class("java.lang.reflect.Array")
        chosen = array.newInstance(options.OVERWRITE.getClass(), int(replaces))
        if replaces:
            array.set(chosen, 0, options.OVERWRITE)
        return chosen

    def _class(self, name: str) -> Any:
        """Return a Java class. Looked up when it is first used, because most runs use no remote path."""
        if name not in self._classes:
            self._classes[name] = internals.context_class(self._context, name)
        return self._classes[name]


def _convert(status: Any) -> FileStatus:
    return FileStatus(bool(status.isDirectory()), int(status.getLen()), int(status.getModificationTime()))


class _ObjectChangedError(OSError):
    """An object was replaced while it was read."""


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise errors of the JVM as `OSError`, and those of missing and existing files as Python's."""
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - importing this module must stay cheap

    try:
        yield
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getSimpleName())
        text = str(error.java_exception.getMessage() or name).splitlines()[0]
        # An answer is one, also if it came to a repeated request: the text then names the failure of the first one.
        is_away = name not in _ERRORS and _AWAY.search(str(error))
        kind, number = (
            (ConnectionError, errno.ECONNREFUSED) if is_away else _ERRORS.get(name, (OSError, errno.EIO))
        )
        raise kind(number, text) from error
    except Py4JError as error:
        raise OSError(errno.EIO, "Spark's JVM has ended") from error


# Two callers that create one file at the same time: the second may find the first one's unfinished file.
_ERRORS: dict[str, tuple[type[OSError], int]] = {
    "FileNotFoundException": (FileNotFoundError, errno.ENOENT),
    "ParentNotDirectoryException": (FileNotFoundError, errno.ENOENT),
    "FileAlreadyExistsException": (FileExistsError, errno.EEXIST),
    "AlreadyBeingCreatedException": (FileExistsError, errno.EEXIST),
    "RemoteFileChangedException": (_ObjectChangedError, errno.EAGAIN),
    "AccessControlException": (PermissionError, errno.EACCES),
}
# The name node, all data nodes or the object store do not answer, or have just been started.
_AWAY = re.compile(
    r"ConnectException|SocketException|SocketTimeoutException|NoRouteToHostException|ConnectTimeoutException"
    r"|UnknownHostException|EOFException|SafeModeException|StandbyException|RetriableException"
    r"|could only be written to 0 of the|does not have enough number of replicas|datanodes .* are bad"
    r"|Connection reset by peer|Broken pipe|Unable to execute HTTP request|Status Code: (?:429|5\d\d)"
)
