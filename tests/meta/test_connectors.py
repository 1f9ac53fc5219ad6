"""A connector is one folder: a kind defines few methods, and nobody else knows its name."""

from __future__ import annotations

import ast
import tomllib
from typing import TYPE_CHECKING, ClassVar

import pytest

from millstream.connectors import registry
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.connectors.api.system import System
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APPEND = OutputMode.APPEND

OTHER_MEANINGS = frozenset({"csv", "files", "foreach", "json", "rate", "socket", "table", "text"})
"""Kinds whose names are also plain words, formats of our own output, or methods of PySpark and Python."""

MAY_NAME_A_KIND = {
    "checking/scripts/interception/spark_formats.py": "what Spark's own readers and writers of a script do",
    "checking/scripts/spark_options.py": "the options of Spark's own readers and writers of a script",
    "checking/scripts/setting_findings.py": "as above: values of those options that Spark refuses",
    "checking/scripts/migration/code_slice.py": "methods of Spark's readers in a script",
    "checking/scripts/migration/project_writer.py": "the sink that replaces a function of a script",
    "checking/scripts/migration/spec_parts.py": "Spark's formats in a script, and the kinds that replace them",
    "proof/migration/delta_tables.py": "the Python module of Delta, which the code of a proof imports",
    "proof/migration/script_execution.py": "as above",
    "spark/resources.py": "the name of a controller of Linux' control groups",
    "spark/cds_training.py": "loads the classes of the locked jars, so that an archive has them",
    "spec/secrets/redaction.py": "words of everyday messages, which are no passwords",
}
"""Files outside connectors/ and devstack/ with a kind's name as a value, and the reason."""


class MinimalWriter(Writer):
    def write(self, frame: object, batch_id: int) -> WriteResult:  # noqa: ARG002
        return WriteResult()


class MinimalSink(Sink):
    """As little as a kind can be."""

    kind = "minimal"
    main = "name"
    modes: ClassVar = frozenset({APPEND})

    name: str

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002
        return Guarantee.AT_LEAST_ONCE, "a repeated batch is written again"

    def target(self) -> str:
        return self.name

    def writer(self, identity: SinkIdentity) -> Writer:
        return MinimalWriter(identity)


def test_a_kind_of_sink_must_define_four_methods_and_a_kind_of_source_one() -> None:
    assert (Sink.__abstractmethods__, Writer.__abstractmethods__) == (
        {"guarantee", "target", "writer"},
        {"write"},
    )
    assert Source.__abstractmethods__ == {"read"}


def test_every_other_hook_of_a_sink_has_a_default_that_promises_nothing() -> None:
    sink = MinimalSink(name="out")
    writer = sink.writer(SinkIdentity("shop", "orders", "id", "minimal:out", APPEND))

    assert (sink.problems(APPEND), sink.refuses({"id": "int"}), sink.needs()) == ([], [], [])
    assert (sink.row_key, sink.delete_marker, sink.failpoints(), sink.writes_to()) == (
        (),
        None,
        (),
        frozenset(),
    )
    assert [sink.rows(1), sink.into("other"), sink.replacing_range(EventTimeRange())] == [None] * 3
    assert sink.identity() == {"kind": "minimal", "target": "out"}
    assert sink.clear_command() == "empty out"
    assert [writer.has_batch(0), writer.has_ledger, sink.replaces_table(APPEND)] == [False] * 3


def test_a_hook_stands_in_one_file() -> None:
    for base in (Sink, Source, Writer):
        bases = [cls for cls in base.__mro__ if cls.__module__.startswith("millstream.connectors.api")]
        names = [
            name
            for cls in bases
            for name, value in vars(cls).items()
            if not name.startswith("_") and getattr(value, "__doc__", None) and callable(value)
        ]

        assert len(names) > 4
        assert sorted(names) == sorted(set(names))


def kind_names() -> frozenset[str]:
    kinds = [
        *registry.sources().values(),
        *registry.sinks().values(),
        *registry.dead_letter_stores().values(),
    ]
    return frozenset({kind.kind for kind in kinds} | {registry.connector_folder(kind) for kind in kinds})


def named_kinds(text: str) -> Iterator[str]:
    """The literals of a module that are a kind's name."""
    names = kind_names() - OTHER_MEANINGS
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in names:
            yield node.value


def test_no_literal_outside_the_connectors_is_the_name_of_a_kind(root: Path) -> None:
    package = root / "src/millstream"
    found = {
        str(file.relative_to(package)): kinds
        for file in package.rglob("*.py")
        if file.relative_to(package).parts[0] not in ("connectors", "devstack")
        and (kinds := sorted(set(named_kinds(file.read_text(encoding="utf-8")))))
    }

    assert {file: kinds for file, kinds in found.items() if file not in MAY_NAME_A_KIND} == {}
    assert sorted(found) == sorted(MAY_NAME_A_KIND)


@pytest.mark.parametrize(("text", "kinds"), [('x == "kafka"', ["kafka"]), ('"kafka is away"', [])])
def test_the_search_finds_a_name_and_not_a_sentence(text: str, kinds: list[str]) -> None:
    assert list(named_kinds(text)) == kinds


def test_the_import_contract_lists_the_folder_of_every_kind(root: Path) -> None:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(entry for entry in contracts if entry["name"] == "Only connectors name a kind")
    folders = {file.parent.name for file in (root / "src/millstream/connectors").glob("*/__init__.py")}

    assert set(contract["protected_modules"]) == {
        f"millstream.connectors.{name}" for name in folders if name != "api"
    }


def test_an_undecided_failpoint_is_one_of_its_system() -> None:
    systems = registry.systems()

    assert {"delta", "files", "kafka", "postgres"} <= set(systems)
    for name, system in systems.items():
        assert system.undecided in ("", *system.failpoints)
        assert all(point.startswith(f"{name}.") for point in system.failpoints)


def test_the_kinds_of_a_folder_declare_one_system() -> None:
    systems = registry.systems()
    for kind in [*registry.sources().values(), *registry.sinks().values()]:
        declared = systems.get(registry.connector_folder(kind), System())
        assert kind.system == declared or (issubclass(kind, Source) and kind.system == System())
