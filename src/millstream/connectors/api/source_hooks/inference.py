"""Hooks of a source kind for `init --from-topic` and `--from-files`: real records, before there is a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millstream.connectors.api.values.file_sample import FileSample


class SourceInference(Spec):
    """Reads records to infer a schema from. By default, a kind has none."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """Ends of the names of files that the kind reads, such as `.csv`."""

    @classmethod
    def topic_settings(
        cls,
        topic: str,  # noqa: ARG003 - a default of a hook
        servers: str,  # noqa: ARG003
        security: Mapping[str, str],  # noqa: ARG003
    ) -> dict[str, Any] | None:
        """Return the settings of a source that reads this topic, or None if the kind reads no topics.

        `security` has the settings of a login; it is empty for a broker without one.
        """
        return None

    @classmethod
    def sample_files(cls, files: Sequence[Path], limit: int) -> FileSample:
        """Read about `limit` rows from the beginning of files. Raises ValueError if they have another format."""
        # Not abstract, because only kinds of files that `init` can read have it.
        raise NotImplementedError
