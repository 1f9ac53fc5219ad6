"""Read a script, a notebook or an export of one as parts of Python code, line by line as in its file."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.python.parsing import parse_python
from millstream.checking.scripts.interception import call_sites
from millstream.checking.syntax_check import EXPORTS, is_notebook

if TYPE_CHECKING:
    from collections.abc import Iterator

# The name by which a notebook runs another one.
RUN = "__millstream_run__"
# The function that is called for folders that a command of the shell deletes.
DELETE = "__millstream_delete__"

# How Databricks and Microsoft Fabric begin each cell of a notebook that they export as Python.
_CELL = re.compile(r"# COMMAND -{10}|# (?:PARAMETERS )?CELL \*{10}")
_MAGIC = re.compile(r"#\s?MAGIC\s?(.*)$")
_RAW_MAGIC = re.compile(r"^[!%]", re.MULTILINE)
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_SQL_PARTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|;""", re.DOTALL)
# The parts of a line of Python that open and close quotes and brackets, and what comes after a backslash.
_PYTHON_PARTS = re.compile(r"""\\.|\"{3}|'{3}|["'#()\[\]{}]""")
_SHELL = re.compile(r"(\s*)(?:[!%?]|\w[\w.]*\?\s*$)")
# Commands that IPython takes for magic also without a '%', if they are no Python.
_AUTOMAGIC = re.compile(r"\s*(?:pip3?|conda|mamba)\s+(?:install|uninstall|list|show|freeze|update)\b")
_RUN_MAGIC = re.compile(r"""(\s*)%run\s+(?:(["'])(.+?)\2|([^\s"']+))""")
# IPython runs the rest of such a line as a statement of the notebook.
_MEASURED = re.compile(r"^(\s*)%(?:time|prun)\s+(?!-)(?=\S)")
_ASSIGNED_SQL = re.compile(r"(\s*\w+\s*=\s*)%sql\b")
_SHELL_DELETION = re.compile(r"(\s*)!\s*(?:sudo\s+)?rm\s+(?:-\S+\s+)*-\w*[rR]\w*\s+(?:-\S+\s+)*([^|;&#>]+)")
_ASSIGNED_SHELL = re.compile(r"(\s*[\w, ]+=\s*)[!%]")


@dataclass(frozen=True)
class CodePart:
    """Python code, and the file that it is read from: a script, or a cell of a notebook."""

    text: str
    file: str


@contextlib.contextmanager
def open_parts(path: Path) -> Iterator[list[CodePart]]:
    """Yield the code of a file. The cells of a notebook are separate files until the block ends.

    Raises SyntaxError for a notebook that is not one.
    """
    if path.suffix != ".ipynb":
        text = _read_script(path)
        if not is_notebook(path):
            yield [CodePart(text, str(path))]
            return
        cells = [_read_cell(cell) for cell in _split_cells(text)]
        for file in (path, path.resolve()):
            call_sites.give_text(file, "\n".join(cells))
        lines = 0
        parts = []
        for code in cells:
            # Each cell is on its lines in the file.
            parts.append(CodePart("\n" * lines + code, str(path)))
            lines += code.count("\n") + 1
        yield parts
        return
    with tempfile.TemporaryDirectory(prefix="millstream-cells-") as folder:
        parts = []
        for number, source in _read_cells(path):
            cell = Path(folder, f"cell-{number}.py")
            cell.write_text(source, encoding="utf-8")
            call_sites.give_name(cell, f"{call_sites.display_name(path)}#cell-{number}")
            parts.append(CodePart(source, str(cell)))
        yield parts


def try_open_parts(path: Path, opened: contextlib.ExitStack) -> list[CodePart] | Exception:
    """Return the code of a file until `opened` is closed, or why it cannot be read."""
    try:
        return opened.enter_context(open_parts(path))
    except (SyntaxError, OSError, ValueError) as error:
        return error


def read_cells(path: Path) -> str:
    """Return the Python code of all cells of a Jupyter notebook."""
    return "\n".join(code for _, code in _read_cells(path))


def _split_cells(text: str) -> list[str]:
    """Return the cells of an export, with all its lines."""
    cells: list[list[str]] = [[]]
    for line in text.split("\n"):
        if _CELL.match(line):
            cells.append([])
        cells[-1].append(line)
    return ["\n".join(cell) for cell in cells]


def _read_cell(cell: str) -> str:
    """Return a cell of an export as Python. Magic may be there as it is in a notebook, and not in comments."""
    return without_magic(cell) if _RAW_MAGIC.search(cell) and not _is_python(cell) else cell


def _is_python(cell: str) -> bool:
    """Return whether Python can read a cell. Magic in it is then part of an expression or of a text."""
    try:
        parse_python(cell)
    except (SyntaxError, ValueError):
        return False
    return True


def _read_script(path: Path) -> str:
    data = path.read_bytes()
    try:
        # Python's own: that of a comment, such as `# -*- coding: latin-1 -*-`.
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError:
        encoding = "utf-8-sig"
    text = data.decode(encoding, errors="surrogateescape")
    return _without_export_magic(text) if text.startswith(EXPORTS) else text


def _read_cells(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the Python code of each code cell, counted from 1 among all cells."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        language = str(notebook.get("metadata", {}).get("language_info", {}).get("name", "python"))
        if language.lower() not in ("python", "ipython", "pyspark"):
            raise SyntaxError(f"its cells are {language}; check reads Python")
        if "worksheets" in notebook:
            raise SyntaxError("its format is older than 4; 'jupyter nbconvert --to notebook' converts it")
        cells = notebook["cells"]
        for number, cell in enumerate(cells, 1):
            source = cell["source"]
            if cell["cell_type"] == "code":
                text = source if isinstance(source, str) else "".join(source)
                yield number, text if _is_python(text) else without_magic(text)
    except (ValueError, KeyError, TypeError) as error:
        raise SyntaxError(f"it is no Jupyter notebook: {error}") from error


def without_magic(cell: str) -> str:
    """Return a cell of Jupyter as Python: SQL becomes a call of `spark.sql`, other magic a comment."""
    lines = cell.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    # Jupyter takes the indentation of the first line from all lines.
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    lines = [line.removeprefix(indent) for line in lines]
    if lines[first].startswith("%%") or re.match(r"%sql\b", lines[first]):
        return "\n".join(["", *[""] * first, *_cell_magic(lines[first:])][1:])
    return "\n".join(_line_magics(lines))


def _cell_magic(lines: list[str]) -> list[str]:
    """Return the lines of a cell that begins with magic."""
    magic, _, rest = lines[0].lstrip("%").partition(" ")
    if magic == "sql":
        return _as_sql([rest, *lines[1:]])
    if magic in ("pyspark", "spark", "python", "time", "timeit", "capture"):
        return ["", *_line_magics(lines[1:])]
    return [f"# {line}" for line in lines]


def _line_magics(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a cell as Python. A backslash at its end continues magic on the next line."""
    continues, query, code_before = False, None, _OpenCode()
    for line in lines:
        if code_before.is_open:
            code_before.read(line)
            yield line
            continue
        if not continues:
            line = _MEASURED.sub(r"\1", line)
        is_last = not line.rstrip().endswith("\\")
        if not continues:
            query = _ASSIGNED_SQL.match(line)
        if query is not None:
            head = f'{query[1]}spark.sql("""' if not continues else ""
            text = line[query.end() :] if not continues else line
            text = text if is_last else text.rstrip()[:-1]
            code = f"{head}{_in_quotes(text)}" + ('""")' if is_last else "")
        else:
            code = f"# {line}" if continues else _line_magic(line)
        continues = code != line and not is_last
        if code == line:
            code_before.read(line)
        yield code


@dataclass
class _OpenCode:
    """What lines of Python have opened and not closed. The lines that close it are not magic."""

    brackets: int = 0
    quote: str = ""
    is_continued: bool = False
    """True after a backslash at the end of a line."""

    @property
    def is_open(self) -> bool:
        """Return whether the next line belongs to the same statement."""
        return self.brackets > 0 or bool(self.quote) or self.is_continued

    def read(self, line: str) -> None:
        """Read the next line."""
        self.is_continued = line.endswith("\\")
        for part in _PYTHON_PARTS.findall(line):
            if self.quote:
                # The text "a""" is one in simple quotes and an empty one.
                self.quote = "" if part in (self.quote, self.quote * 3) else self.quote
            elif part == "#":
                self.is_continued = False
                break
            elif part[0] in "\"'":
                self.quote = part
            elif part in "([{":
                self.brackets += 1
            elif part in ")]}":
                self.brackets = max(0, self.brackets - 1)
        if len(self.quote) == 1 and not self.is_continued:
            self.quote = ""


def _line_magic(line: str) -> str:
    if run := _RUN_MAGIC.match(line):
        return f"{run[1]}{RUN}({(run[3] or run[4])!r})"
    if assigned := _ASSIGNED_SHELL.match(line):
        return f"{assigned[1]}None"
    if deletion := _SHELL_DELETION.match(line):
        return f"{deletion[1]}{DELETE}({deletion[2].split()!r})"
    if shell := _SHELL.match(line):
        return f"{shell[1]}pass  # {line.strip()}"
    if _AUTOMAGIC.match(line):
        return f"# {line}"
    return line


def _as_sql(lines: list[str]) -> list[str]:
    """Return SQL as calls of `spark.sql`, one for each statement, on the same lines."""
    text = _in_quotes("\n".join(lines))
    calls, before = [], ""
    for statement in _split_statements(text):
        if _COMMENTS.sub("", statement).strip():
            calls.append(f'spark.sql("""{before}{statement.rstrip()}""")')
            before = statement[len(statement.rstrip()) :]
        else:
            before += statement
    if not calls:
        return [f"# {line}" for line in lines]
    called = "; ".join(calls).split("\n")
    return [*called, *[""] * (len(lines) - len(called))]


def _in_quotes(text: str) -> str:
    """Return SQL as it is written inside three quotes."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _split_statements(text: str) -> list[str]:
    """Return the statements of an SQL text, split at each semicolon outside of quotes and comments."""
    statements, start = [], 0
    for match in _SQL_PARTS.finditer(text):
        if match[0] == ";":
            statements.append(text[start : match.start()])
            start = match.end()
    return [*statements, text[start:]]


def _without_export_magic(text: str) -> str:
    """Return an export with its magic as Python. Magic is in comments, so all other lines stay as they are."""
    lines, result, index = text.split("\n"), [], 0
    while index < len(lines):
        magic = _MAGIC.match(lines[index])
        if magic is None:
            result.append(lines[index])
            index += 1
            continue
        block = []
        while index < len(lines) and (next_magic := _MAGIC.match(lines[index])):
            block.append(next_magic[1])
            index += 1
        if sql := re.match(r"%%?sql\b", block[0]):
            result += _as_sql([block[0][sql.end() :], *block[1:]])
        elif block[0].startswith("%run"):
            result += [_line_magic(block[0]), *[""] * (len(block) - 1)]
        else:
            result += [""] * len(block)
    return "\n".join(result)


def find_notebook(name: str, folder: Path) -> Path | None:
    """Return the file of a notebook that `%run` names, relative to the folder of the one that runs it."""
    for suffix in ("", ".py", ".ipynb"):
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return path
    # Fabric exports each notebook as a folder.
    path = folder.parent / f"{name}.Notebook" / "notebook-content.py"
    if path.is_file():
        return path
    return None
