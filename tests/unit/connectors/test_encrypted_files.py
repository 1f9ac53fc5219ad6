"""The number of rows of Parquet files whose footer may be encrypted."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.parquet import encryption

from millstream.connectors.files.arrow_files import count_rows

if TYPE_CHECKING:
    from pathlib import Path


class PlainKeys(encryption.KmsClient):  # type: ignore[misc]
    """Keys that are stored next to the data."""

    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped_key: bytes, _: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize(("is_footer_plain", "count"), [(True, 2), (False, None)])
def test_an_encrypted_footer_has_no_number_of_rows(
    tmp_path: Path, count: int | None, *, is_footer_plain: bool
) -> None:
    factory = encryption.CryptoFactory(PlainKeys)
    properties = factory.file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration(
            footer_key="k", column_keys={"k": ["a"]}, plaintext_footer=is_footer_plain
        ),
    )
    table = pa.table({"a": [1, 2]})
    with parquet.ParquetWriter(tmp_path / "f", table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)

    assert count_rows(tmp_path / "f", "parquet") == count
