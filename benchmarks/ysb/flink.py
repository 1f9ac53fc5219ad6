"""Fetch Flink, compile Flink.java, and tell how to run it and what it reported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from millstream.spark.jars import ivy_download, jar_cache
from millstream.spark.java_discovery import find_java
from millstream.spark.resources import available_cores

HERE = Path(__file__).resolve().parent
WINDOW = 10
"""Seconds of event time."""


def prepare(folder: Path) -> None:
    """Fetch the jars that flink.xml names into the folder, unless it has them, and compile the program."""
    jars, classes = folder / "lib", folder / "classes"
    if not list(jars.glob("flink-runtime-*.jar")):
        ivy = next((ivy_download.pyspark_folder() / "jars").glob("ivy-*.jar"))
        settings = ivy_download.user_settings()
        subprocess.run(
            [str(find_java().binary), "-cp", str(ivy), "org.apache.ivy.Main",
             *(["-settings", str(settings)] if settings else []), "-cache", str(folder / "cache"),
             "-ivy", str(HERE / "flink.xml"), "-retrieve", f"{jars}/[artifact]-[revision].[ext]"],
            check=True, stdout=sys.stderr,
        )  # fmt: skip
    compiler = Path(find_java().binary).with_name("javac")
    subprocess.run([compiler, "-cp", f"{jars}/*", "-d", classes, HERE / "Flink.java"], check=True)


def command(folder: Path, kafka: str, topic: str, ads: Path, state: Path, url: str) -> list[str]:
    """The command of one run, which ends at the end of the topic."""
    driver = next(path for path in jar_cache.ensure_jars("spark") if path.name.startswith("postgresql-"))
    user, password, place = re.fullmatch(r"postgres(?:ql)?://([^:@]*)(?::([^@]*))?@(.*)", url).groups()  # type: ignore[union-attr]
    jdbc = f"jdbc:postgresql://{place}?user={user}&password={password or ''}"
    opens = ["java.lang", "java.util", "java.time", "java.net", "java.nio", "java.lang.reflect"]
    return [
        str(find_java().binary), "-Xmx4g", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in opens),
        "-cp", f"{folder}/classes:{driver}:{folder}/lib/*", "Flink",
        kafka, topic, str(ads), str(state), jdbc, str(available_cores()),
    ]  # fmt: skip


def steady_rate(log: Path, rate: int) -> float:
    """Rows per second from the result of the first window to that of the last, of events with `rate` per second."""
    line = next(
        text for text in log.read_text(errors="replace").splitlines() if text.startswith('{"windows"')
    )
    report = json.loads(line)
    return float(report["windows"]) * WINDOW * rate / float(report["seconds"])
