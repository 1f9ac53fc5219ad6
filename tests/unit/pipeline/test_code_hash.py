"""The hash of a Python function follows its code and what it calls, not how it is written."""

from __future__ import annotations

import linecache
import runpy
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.pipeline.code_hash import hash_function

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = '''
from helpers import half
LIMIT = 3
def twice(x):
    return x * 2 + LIMIT
def view(orders):
    """Docs."""
    return orders.select(twice("v"), half("v"))
def other():
    return 1
'''

SAME = {
    "a comment": ("    return x * 2 + LIMIT", "    # two times\n    return (x * 2) + LIMIT"),
    "another docstring": ('"""Docs."""', '"""More docs."""'),
    "a function that is not used": ("return 1", "return 2"),
}
DIFFERENT = {
    "its own code": ('half("v")', 'half("w")'),
    "a function that it calls": ("x * 2", "x * 3"),
    "a constant": ("LIMIT = 3", "LIMIT = 4"),
}


def hashed(
    folder: Path,
    text: str,
    helpers: str = "def half(x):\n    return x / 2\n",
    *,
    is_object: bool = False,
) -> str:
    """The hash of the view of these files, by its name or of the function itself."""
    (folder / "transforms.py").write_text(text)
    (folder / "helpers.py").write_text(helpers)
    if not is_object:
        return hash_function("transforms:view", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        linecache.clearcache()
        for name in ("transforms", "helpers"):
            patch.delitem(sys.modules, name, raising=False)
        names = runpy.run_path(str(folder / "transforms.py"))
        return hash_function(names["view"], folder)


@pytest.mark.parametrize("is_object", [False, True])
@pytest.mark.parametrize("name", SAME)
def test_a_hash_stays(tmp_path: Path, name: str, *, is_object: bool) -> None:
    changed = BEFORE.replace(*SAME[name])

    assert hashed(tmp_path, BEFORE, is_object=is_object) == hashed(tmp_path, changed, is_object=is_object)


@pytest.mark.parametrize("is_object", [False, True])
@pytest.mark.parametrize("name", DIFFERENT)
def test_a_hash_changes(tmp_path: Path, name: str, *, is_object: bool) -> None:
    changed = BEFORE.replace(*DIFFERENT[name])

    assert hashed(tmp_path, BEFORE, is_object=is_object) != hashed(tmp_path, changed, is_object=is_object)


def test_the_pipeline_whose_method_decorates_a_function_does_not_count(tmp_path: Path) -> None:
    text = "class Shop:\n    def view(self, function): return function\n"
    text += "shop = Shop()\nLIMIT = 3\n@shop.view\ndef view(orders):\n    return orders.limit(LIMIT)\n"
    first, *others = (
        hashed(tmp_path, changed, is_object=True)
        for changed in (text, text.replace("Shop()", "Shop( *[])"), text.replace("LIMIT = 3", "LIMIT = 4"))
    )

    assert [other == first for other in others] == [True, False]


def test_a_function_of_another_file_counts(tmp_path: Path) -> None:
    assert hashed(tmp_path, BEFORE) != hashed(tmp_path, BEFORE, "def half(x):\n    return x / 3\n")


def test_a_function_of_another_file_counts_for_the_function_itself(tmp_path: Path) -> None:
    third = "def half(x):\n    return x / 3\n"

    assert hashed(tmp_path, BEFORE, is_object=True) != hashed(tmp_path, BEFORE, third, is_object=True)


@pytest.mark.parametrize(
    ("top", "inside", "used"),
    [
        ("from lib import core", "pass", "core.half"),
        ("from lib import half", "pass", "half"),
        ("from lib.inner import half", "pass", "half"),
        ("import lib.core", "pass", "lib.core.half"),
        ("import lib.core as core", "pass", "core.half"),
        ("import lib.core\nimport lib.other", "pass", "lib.core.half"),
        ("", "from lib import core", "core.half"),
        ("", "import lib.core", "lib.core.half"),
    ],
)
def test_a_module_of_a_package_counts(tmp_path: Path, top: str, inside: str, used: str) -> None:
    lib = tmp_path / "lib"
    (lib / "inner").mkdir(parents=True)
    (lib / "__init__.py").write_text("from .inner import half\n")
    (lib / "inner" / "__init__.py").write_text("from ..core import half\n")
    (lib / "other.py").write_text("def third(x):\n    return x / 3\n")
    text = f"{top}\ndef view(orders):\n    {inside}\n    return orders.select({used}('v'))\n"
    hashes = set()
    for number in (2, 3):
        (lib / "core.py").write_text(f"def half(x):\n    return x / {number}\n")
        hashes.add(hashed(tmp_path, text))

    assert len(hashes) == 2


def test_a_module_that_a_function_imports_counts(tmp_path: Path) -> None:
    text = "def view(orders):\n    import helpers\n    return helpers.half(orders)\n"

    assert hashed(tmp_path, text) != hashed(tmp_path, text, "def half(x):\n    return x / 3\n")


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    third = "def half(x):\n    return x / 3\n"
    plain = hashed(tmp_path, BEFORE)

    marked = hashed(tmp_path, "\ufeff" + BEFORE, "\ufeffdef half(x):\n    return x / 2\n")
    changed = hashed(tmp_path, "\ufeff" + BEFORE, "\ufeff" + third)

    assert (marked == plain, changed == plain) == (True, False)


IMPORTS = {
    "all names": "from helpers import *",
    "try": "try:\n    from nowhere import half\nexcept ImportError:\n    from helpers import half",
    "else of try": "try:\n    import sys\nexcept OSError:\n    half = 1\nelse:\n    from helpers import half",
    "if": "import sys\nif sys.maxsize:\n    from helpers import half\nelse:\n    half = None",
    "with": "import contextlib\nwith contextlib.suppress(ImportError):\n    from helpers import half",
    "try in if": "if 1:\n    try:\n        from helpers import *\n    finally:\n        SIZE = 1",
}


@pytest.mark.parametrize("is_object", [False, True])
@pytest.mark.parametrize("name", IMPORTS)
def test_a_function_of_another_file_counts_however_it_is_imported(
    tmp_path: Path, name: str, *, is_object: bool
) -> None:
    text = BEFORE.replace("from helpers import half", IMPORTS[name])
    third = "def half(x):\n    return x / 3\n"

    assert hashed(tmp_path, text, is_object=is_object) != hashed(tmp_path, text, third, is_object=is_object)


@pytest.mark.parametrize(
    "block",
    [
        "try:\n    from nowhere import half\nexcept ImportError:\n    {}",
        "try:\n    {}\nfinally:\n    SIZE = 1",
        "if LIMIT:\n    {}",
        "if LIMIT:\n    half = None\nelif SIZE:\n    {}",
        "with open('sizes') as sizes:\n    {}",
    ],
)
def test_a_definition_in_a_block_counts_and_others_of_the_block_do_not(tmp_path: Path, block: str) -> None:
    lines = "def half(x): return x / {}\n    def third(x): return x / {}"
    first, *others = (
        hashed(tmp_path, BEFORE.replace("from helpers import half", block.format(lines.format(*numbers))))
        for numbers in ((2, 3), (4, 3), (2, 4))
    )

    assert [other == first for other in others] == [False, True]


@pytest.mark.parametrize(
    ("block", "change"),
    [
        ("SIZE = 1\nif SIZE == 1:\n    half = 2\nelse:\n    half = 3", ("SIZE == 1", "SIZE == 2")),
        ("SIZE = 1\nif SIZE == 1:\n    half = 2\nelse:\n    half = 3", ("SIZE = 1", "SIZE = 2")),
        ("with open('one') as sizes:\n    half = sizes.read()", ("'one'", "'two'")),
    ],
)
def test_what_decides_about_a_definition_counts(tmp_path: Path, block: str, change: tuple[str, str]) -> None:
    before = BEFORE.replace("from helpers import half", block)

    assert hashed(tmp_path, before) != hashed(tmp_path, before.replace(*change))


@pytest.mark.parametrize(
    "condition", ["TYPE_CHECKING", "typing.TYPE_CHECKING", '__name__ == "__main__"', "__name__ == '__main__'"]
)
def test_what_does_not_run_in_an_imported_module_does_not_count(tmp_path: Path, condition: str) -> None:
    text = BEFORE.replace("from helpers import half", f"if {condition}:\n    from helpers import half")

    assert hashed(tmp_path, text) == hashed(tmp_path, text, "def half(x):\n    return x / 3\n")


@pytest.mark.parametrize(
    ("package", "statement", "used"),
    [
        ("from .core import *\n", "from lib import half", "half"),
        ("from .core import *\n", "import lib", "lib.half"),
        ("from .inner import *\n", "from lib import *", "half"),
    ],
)
def test_a_function_that_a_package_imports_with_all_names_counts(
    tmp_path: Path, package: str, statement: str, used: str
) -> None:
    lib = tmp_path / "lib"
    (lib / "inner").mkdir(parents=True)
    (lib / "__init__.py").write_text(package)
    # Modules that import each other end.
    (lib / "inner" / "__init__.py").write_text("from ..core import *\nfrom .. import *\n")
    text = f"{statement}\ndef view(orders):\n    return orders.select({used}('v'))\n"
    hashes = set()
    for number in (2, 3):
        (lib / "core.py").write_text(f"def half(x):\n    return x / {number}\n")
        hashes.add(hashed(tmp_path, text))

    assert len(hashes) == 2
