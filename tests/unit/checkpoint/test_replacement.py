"""Two processes may finish the replacement of one checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checkpoint import replacement

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_replacement_that_another_process_finishes_meanwhile_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sums"
    folder.mkdir()
    prepared = replacement.prepare_folder(folder)
    prepared.mkdir(exist_ok=True)
    (prepared / "metadata").write_text("{}")
    names = {"prepared": prepared.name, "backup": ".sums.before-renewal-1"}
    journal = tmp_path / f".sums{replacement._JOURNAL}"
    journal.write_text(json.dumps(names))
    monkeypatch.setattr(replacement, "flush_path", lambda _: journal.unlink())

    replacement.finish_replacement(folder)

    assert sorted(path.name for path in tmp_path.iterdir()) == [names["backup"], "sums"]
    assert (folder / "metadata").exists()
