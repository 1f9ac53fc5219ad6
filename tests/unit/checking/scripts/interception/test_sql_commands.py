"""The catalog of a session in a check, which is not that of the script."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import MagicMock

from pyspark.errors import AnalysisException
from pyspark.sql.catalog import Catalog

from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.recording import Recording
from millstream.checking.scripts.interception.sql_commands import Statements

if TYPE_CHECKING:
    import pytest


def test_a_database_that_only_the_script_has_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_catalog: Catalog, dbName: str) -> None:  # noqa: N803 - Spark's name
        raise AnalysisException(f"SCHEMA_NOT_FOUND {dbName}")

    monkeypatch.setattr(Catalog, "listTables", refuse)
    catalog = object.__new__(Catalog)
    with Patches() as patches:
        Statements(Recording(), MagicMock()).install(patches)

        catalog.setCurrentDatabase("shop")
        assert isinstance(catalog.listTables(dbName="shop"), Absent)
