"""The login of `init --from-topic`: read its settings, and open the topic with the values of their variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from millstream.diagnostics.failure import InvalidInput
from millstream.spec.secrets.interpolation import interpolate
from millstream.spec.secrets.written_secret import find_written_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from millstream.connectors.api.source import Source

_PROTOCOL = "protocol"
_LOGIN = "SASL_SSL"


def read_security(words: Iterable[str]) -> dict[str, str]:
    """Return the settings of words such as `username=${KAFKA_USER}`. A login without a protocol is encrypted.

    Raises `InvalidInput` for a word without `=`, and for a password that is not a variable.
    """
    settings: dict[str, str] = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not (separator and key and value):
            raise InvalidInput(
                f"--security '{key}' has no value", "write --security NAME=VALUE, as in protocol=SASL_SSL"
            )
        if find_written_secret(key, value) is not None:
            raise InvalidInput(
                f"--security {key} would write the password itself into pipeline.yml",
                f"name a variable that has it: --security '{key}=${{KAFKA_PASSWORD}}'",
            )
        settings[key] = value
    if settings and _PROTOCOL not in settings:
        return {_PROTOCOL: _LOGIN, **settings}
    return settings


def open_source(
    kind: type[Source], settings: Mapping[str, Any], environment: Mapping[str, str], folder: Path
) -> Source:
    """Return a source of this kind, with the variables in its settings replaced.

    Raises `InvalidInput` if a variable is not set, or a setting is not one of the kind's.
    """
    try:
        source = kind.model_validate(
            _replace(dict(settings), environment, folder), context={"folder": folder}
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"{name}: {first['msg'].removeprefix('Value error, ')}",
            f"'millstream explain {kind.kind}' has the settings",
        ) from None
    for problem in source.problems():
        if problem.field == "security":
            raise InvalidInput(problem.message, problem.fix)
    return source


def _replace(value: Any, environment: Mapping[str, str], folder: Path) -> Any:
    """Replace the variables in each text."""
    if isinstance(value, dict):
        return {key: _replace(item, environment, folder) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    text, unset = interpolate(value, environment, folder)
    if unset:
        raise InvalidInput(unset[0].message, unset[0].fix)
    return text
