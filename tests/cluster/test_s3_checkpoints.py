"""The Java classes that create files on S3 by conditional writes, in a session of Spark."""

from __future__ import annotations

import pytest

from cluster.s3_projects import ask

CLASSES = """
from py4j.protocol import Py4JJavaError
from millstream.spark import internals
from millstream.spark.settings import S3_CHECKPOINTS

jvm = internals.jvm(spark)
conf = internals.hadoop_configuration(spark)
Path = jvm.org.apache.hadoop.fs.Path
system = Path(root).getFileSystem(conf)

def attempt(call):
    try:
        return call()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())

def read(name):
    return str(jvm.millstream.ConditionalWrites.read(system, Path(f"{root}/{name}"))[1])

def finish(stream, text):
    stream.write(bytearray(text.encode()))
    return attempt(stream.close) or read("offsets/7")

for key, value in S3_CHECKPOINTS.items():
    conf.set(key, value)
create = getattr(jvm.org.apache.spark.sql.execution.streaming.checkpointing, "CheckpointFileManager").create
files = create(Path(root), conf)
offsets = Path(f"{root}/offsets/7")
late, early = files.createAtomic(offsets, False), files.createAtomic(offsets, False)
answer = {"class": str(files.getClass().getName())}
answer["early"], answer["late"] = finish(early, "early"), finish(late, "late")
late.cancel()
answer["content"] = read("offsets/7")
late, early = files.createAtomic(offsets, True), files.createAtomic(offsets, True)
answer["state"] = [finish(early, "state"), finish(late, "late"), read("offsets/7")]
cancelled = files.createAtomic(Path(f"{root}/offsets/8"), False)
cancelled.write(bytearray(b"half"))
cancelled.cancel()
cancelled.close()
answer["cancelled"] = files.exists(Path(f"{root}/offsets/8"))
answer["names"] = [str(status.getPath().getName()) for status in files.list(Path(f"{root}/offsets"))]
answer["missing"] = attempt(lambda: len(files.list(Path(f"{root}/nothing"))))
local = create(Path("file:/tmp"), conf)
answer["local"] = [local.isLocal(), attempt(lambda: local.list(Path("file:/nothing-here")))]

log = jvm.millstream.ConditionalLogStore(conf)
commit = Path(f"{root}/_delta_log/00000000000000000000.json")
def write(text, replaces):
    lines = jvm.java.util.ArrayList()
    lines.add(text)
    return attempt(lambda: log.write(commit, lines.iterator(), replaces, conf))
answer["log"] = [write("a", False), write("b", False), read("_delta_log/00000000000000000000.json"),
                 write("c", True), read("_delta_log/00000000000000000000.json")]
"""


@pytest.mark.timeout(300)
def test_the_classes_create_an_object_once_and_publish_nothing_that_was_cancelled(
    root: str, conf: dict[str, str]
) -> None:
    answer = ask(root, conf, CLASSES)

    assert answer == {
        "class": "millstream.ConditionalCheckpointFileManager",
        "early": "early",
        "late": "org.apache.hadoop.fs.FileAlreadyExistsException",
        "content": "early",
        "state": ["state", "org.apache.hadoop.fs.FileAlreadyExistsException", "state"],
        "cancelled": False,
        "names": ["7"],
        "missing": 0,
        "local": [True, "java.io.FileNotFoundException"],
        "log": [None, "java.nio.file.FileAlreadyExistsException", "a\n", None, "c\n"],
    }
