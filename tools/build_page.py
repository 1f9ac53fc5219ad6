"""Build the live page from page/ into the package, or check that what is there is what its sources give.

`tools/build_page.py` needs Node (20.19 or later). `--check` needs none: beside the built files lies a record of the
digests of the sources and of the files, and both must still hold. `--check --rebuild` builds once more and compares.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "page"
BUILT = ROOT / "src/millstream/dashboard/static"
RECORD = "built.json"
# What decides about the result; node_modules follows from the lock.
MEANT = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "src/**/*")


def sources() -> list[Path]:
    """The files that the page is built from, in a fixed order."""
    return sorted({file for pattern in MEANT for file in SOURCES.glob(pattern) if file.is_file()})


def digest(file: Path) -> str:
    """SHA-256 of a file's text; line ends do not count, as Git may change them."""
    return hashlib.sha256(file.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def recorded(built: Path) -> dict[str, object]:
    """What the record of a build says: one digest of all sources, and one of each built file."""
    sha256 = hashlib.sha256()
    for file in sources():
        sha256.update(f"{file.relative_to(SOURCES).as_posix()} {digest(file)}\n".encode())
    files = sorted(file for file in built.rglob("*") if file.is_file() and file.name != RECORD)
    return {
        "sources": sha256.hexdigest(),
        "files": {file.relative_to(built).as_posix(): digest(file) for file in files},
    }


def npm(*words: str) -> None:
    """Run npm in page/. Raises `CalledProcessError`, or `FileNotFoundError` where there is none."""
    program = shutil.which("npm")
    if program is None:
        raise FileNotFoundError("there is no npm here; install Node 20.19 or later")
    subprocess.run([program, *words], cwd=SOURCES, check=True, stdout=sys.stderr)


def build(into: Path) -> None:
    """Build into a folder; what was in it goes."""
    if not (SOURCES / "node_modules").is_dir():
        npm("ci", "--ignore-scripts")
    npm("run", "types")
    npm("exec", "--", "vite", "build", "--outDir", str(into), "--emptyOutDir", "--logLevel", "warn")
    (into / RECORD).write_text(json.dumps(recorded(into), indent=2) + "\n", encoding="utf-8")


def faults(*, rebuild: bool) -> list[str]:
    """Why the built page is not what its sources give; empty when it is."""
    cure = "run: python tools/build_page.py"
    if not (BUILT / RECORD).is_file():
        return [f"the page is not built; {cure}"]
    data, now = json.loads((BUILT / RECORD).read_text(encoding="utf-8")), recorded(BUILT)
    actual = []
    if data["sources"] != now["sources"]:
        actual.append(f"page/ was changed after the page was built; {cure}")
    if data["files"] != now["files"]:
        actual.append(f"the files in {BUILT.relative_to(ROOT)} are not those that were built; {cure}")
    if rebuild and not actual:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "static"
            build(path)
            if recorded(path) != now:
                actual.append(f"page/ gives another page than the one in {BUILT.relative_to(ROOT)}; {cure}")
    return actual


def main() -> int:
    """Build or check; 0 when all is well, 1 when the page is stale, 4 without Node."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--check", action="store_true", help="build nothing; fail when the page is stale")
    reader.add_argument("--rebuild", action="store_true", help="with --check: build elsewhere and compare")
    args = reader.parse_args()
    try:
        if args.check:
            actual = faults(rebuild=args.rebuild)
            print("\n".join(actual) or "the built page is what its sources give", file=sys.stderr)
            return 1 if actual else 0
        build(BUILT)
    except FileNotFoundError as absent:
        print(absent, file=sys.stderr)
        return 4
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd[1:])} failed; what it said stands above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
