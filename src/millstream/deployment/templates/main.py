"""Run Millstream from an unpacked package: `python main.py run`, or `spark-submit --jars … main.py run`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))
# Python processes that Millstream or Spark start need it too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE / "lib"), os.environ.get("PYTHONPATH")]))
os.environ.setdefault("MILLSTREAM_JARS", str(HERE / "jars"))
os.chdir(HERE / "project")

from millstream.cli.main import main  # noqa: E402 - found only once the path is set

main()
