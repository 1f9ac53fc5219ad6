"""The examples' notebooks run from their first cell to their last, and show what they promise."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from millstream.cli.init import copy_example

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*/*.ipynb"))


def test_there_is_a_notebook() -> None:
    assert EXAMPLES / "starter" / "notebook.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.parent.name)
def test_it_is_kept_without_what_it_gave(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells

    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.parent.name)
def test_it_runs_and_shows_tables_and_plots(path: Path, tmp_path: Path) -> None:
    project = tmp_path / "mine"
    copy_example(path.parent.name, project)
    notebook = nbformat.read(project / path.name, as_version=4)

    with warnings.catch_warnings():
        # The client's own sockets and event loops; the notebook runs in another process.
        warnings.simplefilter("ignore")
        NotebookClient(
            notebook, timeout=180, kernel_name="python3", resources={"metadata": {"path": project}}
        ).execute()

    pictures = [
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "display_data"
    ]
    assert len(pictures) == sum(
        "display(" in cell.source for cell in notebook.cells if cell.cell_type == "code"
    )
    assert [picture for picture in pictures if "<svg" not in picture or "<td>" not in picture] == []
    assert [picture for picture in pictures if "stopped after" not in picture] == []
