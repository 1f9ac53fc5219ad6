"""Locations of files: a path relative to the file that names it, or a URI, which is not changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import CoreSchema, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ValidationInfo


S3_SCHEME = "s3a://"
"""The scheme of Hadoop's client of S3. PySpark knows no other one."""
S3_SETTINGS = "spark.hadoop.fs.s3a."
"""What the names of the client's settings begin with in a spec."""

# Hadoop reads `hdfs:/logs` as a folder of the default name node. As a path it would be a folder named `hdfs:`.
_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")


class Location(str):
    """A path or URI. A relative path is resolved against the `folder` of the validation context."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(
            cls._resolve, core_schema.str_schema(min_length=1)
        )

    @classmethod
    def _resolve(cls, text: str, info: ValidationInfo) -> Location:
        if text.startswith("file:"):
            return cls(text)
        if match := _ONE_SLASH.match(text):
            scheme, rest = match[1], text[match.end() :]
            raise ValueError(
                f"'{text}' is neither a URI nor a path: write {scheme}://HOST/{rest}, or ./{text} for a folder named "
                f"'{scheme}:' on this machine"
            )
        folder = (info.context or {}).get("folder")
        if folder is None or "://" in text:
            return cls(text)
        try:
            return cls(Path(folder, Path(text).expanduser()))
        except RuntimeError as error:
            user = text[1:].partition("/")[0]
            owner = f"user '{user}' has" if user else "the user of this process has"
            raise ValueError(f"'{text}' is not a path, because {owner} no home directory") from error

    @property
    def local(self) -> Path | None:
        """The path on this machine, or None for a URI of another file system."""
        if self.startswith("file:"):
            return Path("/" + self.removeprefix("file:").lstrip("/"))
        return None if "://" in self else Path(self)

    @property
    def is_on_s3(self) -> bool:
        """Whether Spark reaches it with Hadoop's client of S3."""
        return self.startswith(S3_SCHEME)

    def beside(self, name: str) -> Location:
        """Return the location `name`: a name without a slash is in the same folder, any other is taken unchanged."""
        return Location(name if "/" in name else f"{self.rstrip('/').rpartition('/')[0] or '.'}/{name}")
