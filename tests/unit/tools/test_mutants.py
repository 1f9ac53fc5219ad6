"""Each mutant changes one place, and knows the function whose code it replaces."""

from __future__ import annotations

import mutant_code

TEXT = """
LIMIT = 3

class Box:
    @property
    def is_full(self) -> bool:
        return len(self.items) >= LIMIT
"""


def test_a_mutant_changes_one_place_and_names_its_function() -> None:
    mutants = list(mutant_code.find_mutants("box.py", TEXT))

    assert [(mutant.line, mutant.what, mutant.function) for mutant in mutants] == [
        (2, "3 to 4", None),
        (7, "returns None", ("Box.is_full", 5)),
        (7, "GtE to Gt", ("Box.is_full", 5)),
    ]
    changed = [mutant_code.mutate(TEXT, mutant.node) for mutant in mutants]
    assert ["LIMIT = 4" in changed[0], "return None" in changed[1], "> LIMIT" in changed[2]] == [True] * 3
    assert "LIMIT = 3" in changed[1]
